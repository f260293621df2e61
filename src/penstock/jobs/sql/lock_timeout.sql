-- How many milliseconds this transaction waits for any lock from here on; 0, as long as it takes.
SELECT set_config('lock_timeout', (:milliseconds::integer)::text, true)
