-- Somebody asks for a pass now. Nothing is returned when somebody did so less than :pause seconds ago, at whichever
-- control plane: the row is locked, so of two at once the second sees the first.
INSERT INTO penstock.background_loop AS l (name, triggered_at, triggered_by, reason)
VALUES (:name, penstock.now(), :actor, :reason)
ON CONFLICT (name) DO UPDATE
SET triggered_at = excluded.triggered_at, triggered_by = excluded.triggered_by, reason = excluded.reason
WHERE l.triggered_at IS NULL OR l.triggered_at <= penstock.now() - make_interval(secs => :pause)
RETURNING l.triggered_at
