"""Where data comes from: one contract, one module a driver, each imported only when it is chosen."""
