"""Search collections that you do not hold: harvest the index, not the content."""

__version__ = "0.1.0"
