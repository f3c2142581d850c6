"""Faults of the machine under everything that writes: kills, torn writes, a full disk, a power cut."""
