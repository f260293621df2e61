-- A worker that leaves in order takes its name off the list.
DELETE FROM penstock.worker WHERE name = :name AND session = :session
