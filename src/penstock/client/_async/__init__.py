"""The asynchronous core. The synchronous face beside it is written from it by `python -m
tools.unasync`."""
