"""Harvest a source: what to do next (`decide`), HTTP (`client`), and the loop between them (`run`)."""

import sys

# The command line of httpx: nobody needs it here, and it brings a library for coloured source code along.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
