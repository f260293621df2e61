-- Whether one of these functions may be an aggregate or a window function.
SELECT COALESCE(bool_or(prokind IN ('a', 'w')), false) FROM pg_proc WHERE proname = ANY (:names::text[])
