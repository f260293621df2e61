"""SQL engines that match: one contract, one module a driver."""
