"""SQL engines that run a matching: one contract, one driver module per engine."""
