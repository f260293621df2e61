INSERT INTO penstock.job_group (group_id, name, gate, payload, opens, deadline)
VALUES (nextval('penstock.group_id'), :name, :gate, :payload, :opens, penstock.now() + :deadline_in::interval)
RETURNING group_id
