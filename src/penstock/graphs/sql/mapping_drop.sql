-- Its versions go with it. A snapshot that was made since somebody looked keeps both, by its foreign key.
DELETE FROM penstock.mapping WHERE mapping_id = :mapping_id
