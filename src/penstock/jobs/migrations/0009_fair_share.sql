-- Where in the order of a queue the last job of a user stands.
CREATE TABLE penstock.fair_share (
  queue      text NOT NULL,
  username   text NOT NULL,
  virtual_at timestamptz NOT NULL,
  PRIMARY KEY (queue, username)
);
