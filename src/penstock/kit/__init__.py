"""Building blocks without any domain: clock, ids, errors, settings, logging, database, loops."""
