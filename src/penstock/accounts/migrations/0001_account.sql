-- Users, their API keys, and the answers that were given under an idempotency key.

CREATE TABLE penstock.account (
  username        text PRIMARY KEY,
  email           text,
  display_name    text,
  role            text NOT NULL,
  is_active       boolean NOT NULL DEFAULT true,
  created_at      timestamptz NOT NULL DEFAULT penstock.now(),
  updated_at      timestamptz NOT NULL DEFAULT penstock.now(),
  last_login_at   timestamptz,
  role_changed_at timestamptz,
  role_changed_by text,
  CONSTRAINT account_role CHECK (role IN ('analyst', 'admin', 'ops'))
);
CREATE UNIQUE INDEX account_name ON penstock.account (lower(username));
COMMENT ON INDEX penstock.account_name IS 'Ann and ann are one person, however an identity provider spells them.';
CREATE INDEX account_newest ON penstock.account (created_at DESC, username DESC);

CREATE TABLE penstock.api_key (
  api_key_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  username     text NOT NULL REFERENCES penstock.account ON DELETE CASCADE,
  name         text NOT NULL,
  hint         text NOT NULL,
  digest       bytea NOT NULL UNIQUE,
  created_at   timestamptz NOT NULL DEFAULT penstock.now(),
  created_by   text NOT NULL,
  expires_at   timestamptz NOT NULL,
  revoked_at   timestamptz,
  last_used_at timestamptz
);
COMMENT ON COLUMN penstock.api_key.digest IS 'SHA-256 of the key, which has 256 random bits; the key itself is shown once and kept nowhere.';
COMMENT ON COLUMN penstock.api_key.hint IS 'How the key begins, so that its owner knows it again.';
CREATE INDEX api_key_username ON penstock.api_key (username, api_key_id DESC);

CREATE TABLE penstock.idempotency (
  idempotency_id bytea PRIMARY KEY,
  username       text NOT NULL,
  method         text NOT NULL,
  path           text NOT NULL,
  digest         bytea NOT NULL,
  attempt_id     uuid NOT NULL,
  begun_at       timestamptz NOT NULL DEFAULT penstock.now(),
  answered_at    timestamptz,
  status         smallint,
  headers        jsonb,
  body           bytea
);
COMMENT ON COLUMN penstock.idempotency.idempotency_id IS 'SHA-256 of caller, method, path and the key they sent.';
COMMENT ON COLUMN penstock.idempotency.digest IS 'HMAC of the request''s body under the key they sent, which is not kept: nobody can guess a body from it.';
COMMENT ON COLUMN penstock.idempotency.status IS 'Null while the first request is under way, and of an answer that held a secret.';
CREATE INDEX idempotency_begun ON penstock.idempotency (begun_at);
