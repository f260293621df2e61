-- Which process of a name is the current one: a process that starts anew under a name takes the attempts of the one
-- before it over at once, instead of waiting for their leases.

ALTER TABLE penstock.live ADD COLUMN session uuid;
COMMENT ON COLUMN penstock.live.session IS
  'The process that runs the attempt, where it registered one. NULL: the attempt ends by its lease alone.';

CREATE TABLE penstock.worker_session (
  session       uuid PRIMARY KEY,
  worker        text NOT NULL,
  registered_at timestamptz NOT NULL DEFAULT penstock.now(),
  ended_at      timestamptz,
  superseded_by uuid,
  alive_at      timestamptz
);
COMMENT ON TABLE penstock.worker_session IS
  'Processes that registered as workers. One ends in order, or when a later one of its name registers.';
COMMENT ON COLUMN penstock.worker_session.alive_at IS
  'The last heartbeat after it was superseded: proof that two live processes share the name.';
CREATE UNIQUE INDEX worker_session_current ON penstock.worker_session (worker) WHERE ended_at IS NULL;
CREATE INDEX worker_session_worker ON penstock.worker_session (worker);
