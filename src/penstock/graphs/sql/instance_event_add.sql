INSERT INTO penstock.instance_event (instance_id, event_type, actor, details)
VALUES (:instance_id, :event_type, :actor, :details::jsonb)
