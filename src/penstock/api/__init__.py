"""The control plane's HTTP API: routes, authentication and permissions."""
