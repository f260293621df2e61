INSERT INTO penstock.upload (upload_id, owner_username, name, key, rows, size_bytes, sha256, columns)
VALUES (:upload_id, :owner_username, :name, :key, :rows, :size_bytes, :sha256, :columns)
