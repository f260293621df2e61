-- How often in a row a job was put off by workers that have no handler for its kind. Until now its polls were counted,
-- and a job that was polled often while it went well failed at the first such worker.

ALTER TABLE penstock.live ADD COLUMN unhandled integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN penstock.live.unhandled IS 'Workers without a handler for its kind that put it off, since one that has.';
