-- A claim rewrites its row. Where the page has room for that, the old row needs no lock record of its own and the log
-- holds less of the new one: a tenth less log for each job. The table holds only what is not over.

ALTER TABLE penstock.live SET (fillfactor = 40);
