-- Rings the bell for a queue. Always alone in its transaction: a NOTIFY makes commits queue up behind each other.
SELECT pg_notify('penstock_bell', :message)
