"""What every request passes: limits of bodies, ids, logs, idempotency and long polls."""
