-- Uploads end some time after their last use, and count against a quota of their owner.

ALTER TABLE penstock.upload ADD COLUMN used_at timestamptz NOT NULL DEFAULT penstock.now();
COMMENT ON COLUMN penstock.upload.used_at IS 'When a run last read it, or when it was uploaded.';
CREATE INDEX upload_used_at ON penstock.upload (used_at);
CREATE INDEX upload_owner ON penstock.upload (owner_username, created_at);
