"""The control plane's HTTP edge: it speaks the protocol and holds no policy."""
