"""Laws are tested, not times."""

from hypothesis import settings

settings.register_profile("text", deadline=None)
settings.load_profile("text")
