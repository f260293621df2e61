"""Long data work that must not be lost, doubled or left half done, behind one gate."""

__version__ = "0.1.0"
