-- Wakes claimers of a queue. Always alone in its transaction: a NOTIFY makes commits queue up behind each other, and
-- these need not wait for the disk, for what is announced is committed already and a crash ends all who listen.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('penstock_bell', :message)
