-- Whether the worker of an attempt was heard of after the attempt's time was over. Until now this was guessed from the
-- lease, which ended with that time, so a worker that vanished shortly before it looked like one that was too slow.

ALTER TABLE penstock.live ADD COLUMN overdue boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN penstock.live.overdue IS
  'Its worker was heard of after the attempt''s deadline: the attempt ran out of time, its worker did not vanish.';
