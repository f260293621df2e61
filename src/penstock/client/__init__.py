"""The client: what speaks to a control plane over HTTP, and knows nothing of the server's rooms."""
