"""The synchronous face, written from `_async` by `python -m
tools.unasync`."""
