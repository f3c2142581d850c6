"""Bytes that nobody wrote, for everything that reads bytes from outside. Run by `make fuzz`."""
