-- Whoever counts against the limits and adds to them does so alone, until the transaction ends.
SELECT pg_advisory_xact_lock(8100512271)
