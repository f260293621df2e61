DELETE FROM penstock.worker WHERE seen_at < penstock.now() - interval '1 day'
