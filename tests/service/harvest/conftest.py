"""The misbehaving provider lives in tests/hostile, where the benchmarks find it too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "hostile"))
