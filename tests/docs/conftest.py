from tests.examples.conftest import running

__all__ = ["running"]
