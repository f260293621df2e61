-- What people decided by hand about records of a recipe, and what they wrote beside them; both outlive runs.

CREATE TABLE penstock.decision (
  decision_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  recipe_id   text NOT NULL REFERENCES penstock.recipe ON DELETE CASCADE,
  kind        text NOT NULL,
  left_key    text NOT NULL,
  right_key   text NOT NULL,
  comment     text NOT NULL DEFAULT '',
  created_by  text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT penstock.now(),
  CONSTRAINT decision_kind CHECK (kind IN ('match', 'unmatch'))
);
COMMENT ON TABLE penstock.decision IS 'Pairs that belong together, or do not, whatever the rules say; keys are JSON arrays of texts.';
CREATE UNIQUE INDEX decision_left ON penstock.decision (recipe_id, left_key) WHERE kind = 'match';
CREATE UNIQUE INDEX decision_right ON penstock.decision (recipe_id, right_key) WHERE kind = 'match';
CREATE UNIQUE INDEX decision_pair ON penstock.decision (recipe_id, left_key, right_key);

CREATE TABLE penstock.item_note (
  recipe_id  text NOT NULL REFERENCES penstock.recipe ON DELETE CASCADE,
  side       text NOT NULL,
  key        text NOT NULL,
  label      text,
  comment    text,
  assignee   text,
  updated_by text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT penstock.now(),
  PRIMARY KEY (recipe_id, side, key),
  CONSTRAINT item_note_side CHECK (side IN ('left', 'right'))
);
COMMENT ON TABLE penstock.item_note IS 'Label, comment and assignee of a record, by its key.';

ALTER TABLE penstock.run ADD COLUMN started_by bigint UNIQUE;
COMMENT ON COLUMN penstock.run.started_by IS 'The scheduled job that asked for it; a job asks for one run.';
