"""Users, API keys, browser sessions, OIDC tokens and the service tokens of our own processes."""
