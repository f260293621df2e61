-- The end: its process is gone before. Its events and favourites go with it.
DELETE FROM penstock.instance WHERE instance_id = :instance_id AND status = 'stopping'
