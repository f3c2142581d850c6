"""With NUMBA_BOUNDSCHECK=1, as under `make fuzz`, a place outside an array is an error and not a crash."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import numpy as np
from indlet.kernels.codec import word
from indlet.kernels.jit import kernel, part
from indlet.kernels.scan import put_word

@part
def inner(array, at):
    return array[at]

@kernel
def item(array, at):
    return int(inner(array, at))

@kernel
def eight(array, at):
    put_word(array, at, word(array, at))
    return int(word(array, at))

array = np.arange(16, dtype=np.uint8)
print(item(array, 15), eight(array, 8) == int.from_bytes(range(8, 16), "little"))
for call, at in ((item, 16), (eight, 9), (eight, -1), (eight, 1 << 40)):
    try:
        call(array, at)
    except IndexError:
        print("refused")
"""


def test_a_place_outside_an_array_is_an_error_in_machine_code() -> None:
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed.split("\n")[:-1] == ["15 True", *["refused"] * 4]
