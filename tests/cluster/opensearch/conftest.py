"""Records as the store would feed them."""

from __future__ import annotations

from tests.service.index.conftest import record as record
