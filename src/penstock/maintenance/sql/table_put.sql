-- What a catalog said of a table, in the place of what it said before. Index: primary key.
INSERT INTO penstock.maintained_table (catalog, db, table_name, enabled, score, facts, health, error)
VALUES (:catalog, :db, :table_name, :enabled, :score, :facts::jsonb, :health::jsonb, :error)
ON CONFLICT (catalog, db, table_name) DO UPDATE SET
  enabled = excluded.enabled, score = excluded.score, facts = excluded.facts, health = excluded.health,
  error = excluded.error, seen_at = penstock.now()
