-- The kernel's tables. An immutable job, a narrow live row only while it is not over, an append-only outcome.

CREATE FUNCTION penstock.now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT statement_timestamp()';
COMMENT ON FUNCTION penstock.now() IS
  'The only clock of leases: of the statement, for a transaction may have waited. Tests replace it to move time.';

CREATE FUNCTION penstock.attempt_id(seed text, job_id bigint) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $do$SELECT (seed || lpad(to_hex(job_id), 12, '0'))::uuid$do$;
COMMENT ON FUNCTION penstock.attempt_id(text, bigint) IS
  'A fence: 74 random bits of its claim, then the job. Never a counter, for a counter can be issued twice after a lost claim.';

CREATE SEQUENCE penstock.job_id;
CREATE TABLE penstock.job (
  job_id       bigint PRIMARY KEY,
  created_at   timestamptz NOT NULL DEFAULT penstock.now(),
  group_id     bigint,
  retry_of     bigint,
  deadline_at  timestamptz,
  lease_s      integer NOT NULL,
  timeout_s    integer NOT NULL,
  max_attempts smallint NOT NULL,
  priority     smallint NOT NULL,
  kind         text NOT NULL,
  queue        text NOT NULL,
  payload      jsonb NOT NULL,
  lock_key     text,
  unique_key   text,
  cleanup_kind text,
  created_by   text,
  trace        text
);
COMMENT ON TABLE penstock.job IS 'What was asked for; written once, never changed.';
CREATE UNIQUE INDEX job_unique_key ON penstock.job (unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX job_by_group ON penstock.job (group_id) WHERE group_id IS NOT NULL;

CREATE TABLE penstock.live (
  job_id      bigint PRIMARY KEY,
  order_key   bigint NOT NULL,
  group_id    bigint,
  claimed_at  timestamptz,
  lease_until timestamptz,
  deadline    timestamptz,
  wake_at     timestamptz,
  attempt_id  uuid,
  polls       integer NOT NULL DEFAULT 0,
  status      smallint NOT NULL,
  attempt_no  smallint NOT NULL DEFAULT 0,
  queue       text NOT NULL,
  worker      text,
  lock_key    text,
  state       jsonb,
  progress    jsonb,
  CONSTRAINT running_has_a_fence CHECK ((status = 1) = (attempt_id IS NOT NULL))
);
COMMENT ON TABLE penstock.live IS 'Jobs that are not over. status: 0 ready, 1 running, 2 parked, 3 scheduled.';
COMMENT ON COLUMN penstock.live.attempt_id IS 'The fence: every write of an attempt is predicated on it.';
COMMENT ON COLUMN penstock.live.order_key IS 'Microseconds of becoming ready plus priority times the ageing step; lowest first.';
CREATE INDEX live_ready ON penstock.live (queue, order_key) WHERE status = 0;
CREATE INDEX live_running ON penstock.live (lease_until) WHERE status = 1;
CREATE INDEX live_due ON penstock.live (wake_at) WHERE status IN (2, 3);
CREATE INDEX live_deadline ON penstock.live (deadline) WHERE status <> 1 AND deadline IS NOT NULL;
CREATE INDEX live_group ON penstock.live (group_id) WHERE group_id IS NOT NULL;
CREATE UNIQUE INDEX live_lock ON penstock.live (lock_key) WHERE lock_key IS NOT NULL;
ALTER TABLE penstock.live SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE penstock.outcome (
  job_id      bigint NOT NULL,
  finished_at timestamptz NOT NULL DEFAULT penstock.now(),
  claimed_at  timestamptz,
  attempt_id  uuid,
  attempt_no  smallint NOT NULL,
  status      smallint NOT NULL,
  worker      text,
  result      jsonb,
  error       jsonb
) PARTITION BY RANGE (finished_at);
COMMENT ON TABLE penstock.outcome IS 'How each job ended, once. status: 10 succeeded, 11 failed, 12 cancelled.';
CREATE INDEX outcome_job ON penstock.outcome (job_id);
CREATE INDEX outcome_not_succeeded ON penstock.outcome (status, job_id) WHERE status <> 10;
CREATE TABLE penstock.outcome_rest PARTITION OF penstock.outcome DEFAULT;

CREATE FUNCTION penstock.make_outcome_partition(month date) RETURNS text
LANGUAGE plpgsql AS $do$
DECLARE
  name   text := 'outcome_' || to_char(month, 'YYYYMM');
  begins timestamptz := date_trunc('month', month::timestamp) AT TIME ZONE 'UTC';
  ends   timestamptz := (date_trunc('month', month::timestamp) + interval '1 month') AT TIME ZONE 'UTC';
BEGIN
  IF to_regclass('penstock.' || name) IS NULL THEN
    EXECUTE format('CREATE TABLE penstock.%I (LIKE penstock.outcome INCLUDING DEFAULTS)', name);
    LOCK TABLE penstock.outcome_rest IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('WITH moved AS (DELETE FROM penstock.outcome_rest WHERE finished_at >= %L AND finished_at < %L RETURNING *)
      INSERT INTO penstock.%I SELECT * FROM moved', begins, ends, name);
    EXECUTE format('ALTER TABLE penstock.outcome ATTACH PARTITION penstock.%I FOR VALUES FROM (%L) TO (%L)', name, begins, ends);
  END IF;
  RETURN name;
END
$do$;
COMMENT ON FUNCTION penstock.make_outcome_partition(date) IS
  'A month of ends. Those that came before it lie in outcome_rest, which no partition may overlap, and are moved.';
SELECT penstock.make_outcome_partition((penstock.now() + make_interval(months => m))::date) FROM generate_series(0, 2) m;

CREATE TABLE penstock.attempt (
  job_id     bigint NOT NULL,
  ended_at   timestamptz NOT NULL DEFAULT penstock.now(),
  claimed_at timestamptz,
  attempt_id uuid NOT NULL,
  attempt_no smallint NOT NULL,
  how        text NOT NULL,
  worker     text,
  detail     jsonb
);
COMMENT ON TABLE penstock.attempt IS 'Attempts that ended without ending their job: parked, released, retried, lapsed, cancelled, failed.';
CREATE INDEX attempt_job ON penstock.attempt (job_id);

CREATE SEQUENCE penstock.group_id;
CREATE TABLE penstock.job_group (
  group_id   bigint PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT penstock.now(),
  closed_at  timestamptz,
  deadline   timestamptz,
  status     smallint NOT NULL DEFAULT 0,
  name       text NOT NULL,
  gate       text,
  payload    jsonb NOT NULL,
  opens      jsonb NOT NULL,
  error      jsonb
);
COMMENT ON TABLE penstock.job_group IS 'Jobs that belong together. status: 0 open, 1 failing, 10 succeeded, 11 failed, 12 cancelled; past 9 the gate has fired.';
CREATE INDEX job_group_open ON penstock.job_group (deadline) WHERE status < 10;

CREATE TABLE penstock.worker (
  name       text PRIMARY KEY,
  session    uuid NOT NULL,
  started_at timestamptz NOT NULL DEFAULT penstock.now(),
  seen_at    timestamptz NOT NULL DEFAULT penstock.now(),
  running    integer NOT NULL,
  slots      integer NOT NULL,
  queues     text[] NOT NULL,
  version    text NOT NULL
);
COMMENT ON TABLE penstock.worker IS 'Who is there, for people; no decision about a job rests on it.';

CREATE TABLE penstock.control (
  only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  draining   boolean NOT NULL DEFAULT false,
  changed_at timestamptz NOT NULL DEFAULT penstock.now(),
  changed_by text NOT NULL DEFAULT 'installation',
  reason     text NOT NULL DEFAULT ''
);
INSERT INTO penstock.control DEFAULT VALUES;

CREATE TABLE penstock.schedule (
  name       text PRIMARY KEY,
  cron       text NOT NULL,
  zone       text NOT NULL,
  enabled    boolean NOT NULL DEFAULT true,
  next_at    timestamptz NOT NULL,
  last_at    timestamptz,
  last_job   bigint,
  spec       jsonb NOT NULL
);
CREATE INDEX schedule_due ON penstock.schedule (next_at) WHERE enabled;

CREATE TABLE penstock.audit (
  at      timestamptz NOT NULL DEFAULT penstock.now(),
  actor   text NOT NULL,
  action  text NOT NULL,
  subject text NOT NULL,
  detail  jsonb NOT NULL
);
COMMENT ON TABLE penstock.audit IS 'Who changed what by hand, and when.';
CREATE INDEX audit_at ON penstock.audit (at);
CREATE INDEX audit_subject ON penstock.audit (subject);
