-- Makes the outcome partitions of this month and the next two.
SELECT penstock.make_outcome_partition((penstock.now() + make_interval(months => m))::date) FROM generate_series(0, 2) m
