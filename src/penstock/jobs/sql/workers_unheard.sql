-- Whether there are workers, and none of them was heard of in the last :seconds: they may be well, and nobody there to
-- hear them. The list of workers is short.
SELECT count(*) > 0 AND max(seen_at) < penstock.now() - make_interval(secs => :seconds) FROM penstock.worker
