-- For a request through the proxy, at most once a second where nothing changed. Index: instance_url_slug_key.
SELECT i.*, s.name AS snapshot_name
FROM penstock.instance i LEFT JOIN penstock.snapshot s USING (snapshot_id)
WHERE i.url_slug = :slug
