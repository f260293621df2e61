UPDATE penstock.data_source SET tested_at = now(), test_ok = :ok, test_says = :says WHERE data_source_id = :data_source_id
