SELECT draining, changed_at, changed_by, reason FROM penstock.control
