-- Browsers that were signed in with a one-time link, and the role under which an answer was first given.

CREATE TABLE penstock.browser_session (
  link_digest     bytea PRIMARY KEY,
  link_expires_at timestamptz NOT NULL,
  session_digest  bytea UNIQUE,
  opened_at       timestamptz,
  expires_at      timestamptz,
  created_at      timestamptz NOT NULL DEFAULT penstock.now()
);
COMMENT ON TABLE penstock.browser_session IS 'One row a login link; opening it, once, makes it a session.';
COMMENT ON COLUMN penstock.browser_session.link_digest IS 'HMAC of the link under the operator token: another operator token, and neither links nor sessions are found.';
CREATE INDEX browser_session_created ON penstock.browser_session (created_at);

ALTER TABLE penstock.idempotency ADD COLUMN role text NOT NULL DEFAULT 'analyst';
COMMENT ON COLUMN penstock.idempotency.role IS 'The role of the caller whom the answer was given to; a lesser one does not get it.';
