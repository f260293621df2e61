-- Index: instance_event_instance.
SELECT * FROM penstock.instance_event WHERE instance_id = :instance_id ORDER BY event_id DESC LIMIT 1000
