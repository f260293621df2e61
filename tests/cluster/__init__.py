"""Penstock on a real Kubernetes, on this machine: `make test-cluster`.

The parts come from package registries (`parts.py`). Everything runs in namespaces of its own for
processes, mounts and network (`__main__.py`), where `inside.py` starts the cluster and tries
Penstock on it. When that process ends, however it ends, the kernel ends all the rest.
"""
