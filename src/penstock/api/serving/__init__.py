"""The processes that listen: sockets, TLS, siblings on one port, health."""
