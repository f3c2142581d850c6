"""Letters without their accents: how words are compared where accents are not to count."""

from indlet._core import without_accents

__all__ = ["without_accents"]
