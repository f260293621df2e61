-- Sessions that were over, or registered and not seen since, a week ago. A process that is frozen for longer is fenced
-- all the same.
DELETE FROM penstock.worker_session s
WHERE coalesce(s.alive_at, s.ended_at, s.registered_at) < penstock.now() - interval '7 days'
  AND NOT EXISTS (SELECT FROM penstock.worker w WHERE w.name = s.worker AND w.session = s.session)
