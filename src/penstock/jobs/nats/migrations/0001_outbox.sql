-- Jobs that became ready and are still to be announced by NATS. It stays empty where the queue is PostgreSQL alone.
CREATE TABLE penstock.outbox (
  outbox_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  message_id uuid NOT NULL DEFAULT gen_random_uuid(),
  job_id     bigint NOT NULL,
  order_key  bigint NOT NULL,
  queue      text NOT NULL
);
COMMENT ON TABLE penstock.outbox IS 'Announcements that NATS has not taken yet; written with the change that made the job ready.';
COMMENT ON COLUMN penstock.outbox.message_id IS
  'Of this announcement alone: JetStream drops a message whose id it has seen lately.';
ALTER TABLE penstock.outbox SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
