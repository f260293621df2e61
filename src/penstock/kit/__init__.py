"""The floor: what every room may stand on, and no word of any domain."""
