-- One change of the default at a time; two that meet would both be the second.
SELECT pg_advisory_xact_lock(hashtextextended('penstock.data_source.default', 0))
