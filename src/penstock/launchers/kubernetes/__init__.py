"""The Kubernetes launcher: a pod for each graph server."""
