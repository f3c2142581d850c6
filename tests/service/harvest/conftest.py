"""The misbehaving provider lives in tests/hostile, where the benchmarks find it too."""

from __future__ import annotations

import sys
import types
from pathlib import Path

# pytest names test modules by their path, but does not make `tests` a package that can be imported from.
package = sys.modules.setdefault("tests", types.ModuleType("tests"))
package.__path__ = [str(Path(__file__).parents[2])]
