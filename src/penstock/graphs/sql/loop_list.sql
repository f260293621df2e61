SELECT name, last_run, last_status, next_run FROM penstock.background_loop
