-- When the reaper must look at a group, and when a schedule that could not be kept is tried again. Who is looked at goes to
-- the end of the line, so none that fails again and again hides another.

ALTER TABLE penstock.job_group ADD COLUMN look_at timestamptz;
COMMENT ON COLUMN penstock.job_group.look_at IS
  'When the reaper looks at it: at once when it is failing, later when its gate failed; NULL: at its deadline.';
UPDATE penstock.job_group SET look_at = penstock.now() WHERE status < 10;
CREATE INDEX job_group_look ON penstock.job_group ((coalesce(look_at, deadline))) WHERE status < 10;
DROP INDEX penstock.job_group_open;

ALTER TABLE penstock.schedule ADD COLUMN try_at timestamptz, ADD COLUMN failures integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN penstock.schedule.try_at IS 'When a tick whose job was refused is tried again; NULL: at next_at.';
DROP INDEX penstock.schedule_due;
CREATE INDEX schedule_due ON penstock.schedule ((coalesce(try_at, next_at))) WHERE enabled;
