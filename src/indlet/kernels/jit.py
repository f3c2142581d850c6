"""The decorators under which every kernel is compiled.

Machine code is kept beside the package, or in the user's cache folder where the package is read-only: a
file for each kernel and types of arguments, which later processes load without numba (`machine_code`). Until
it is there, a process aside compiles, and Python runs the kernel (`interpreted`) on what is small. Where
neither can be written the kernels still work: each process then compiles its own. `nogil` lets searches in
threads run side by side. No `fastmath`: scores must be equal bit for bit. A kernel gives numbers; arrays are
given to it. Only kernels that make arrays count references: where a kernel calls another for each document,
to count those to its arrays took a fifth of the time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from indlet.kernels import interpreted, machine_code, state
from indlet.kernels.machine_code import LOCK, Machine, fingerprint

P = ParamSpec("P")
T = TypeVar("T")
Llvm = Any  # what numba and llvmlite hand to an intrinsic, and the intrinsic itself: they have no types

# Python's own numbers are to numba what these are.
_SAME = {int: np.int64, float: np.float64, bool: np.bool_}
# Of an array: contiguous in C's order, aligned, writeable.
_FLAGS = 0x501
# Python runs a kernel on arrays of so many bytes in all, and for so many seconds in all.
_SMALL = 4 << 20
_PATIENCE = 3.0
# With NUMBA_BOUNDSCHECK=1 each place in an array is checked, also by intrinsics, and a place outside is an
# IndexError. Such machine code is not kept.
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK") == "1"


class Kernel:
    """A function that is compiled or loaded when it is called first, for the types of its arguments."""

    def __init__(self, function: Callable[..., object], *, light: bool = False, **options: bool) -> None:
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self.__module__ = function.__module__
        self.__wrapped__ = self.interpreted = function
        self._options, self._light = options, light
        self._patience = _PATIENCE
        self._entries: dict[bytes, Callable[..., object]] = {}
        self._linked: dict[object, Callable[..., object]] = {}
        # Fingerprints tell structured types apart by their addresses, so these stay where they are.
        self._met: list[object] = []

    def __call__(self, *arguments: object) -> object:
        if CHECKED:
            with LOCK:
                dispatcher = self._dispatcher
            return dispatcher(*arguments)
        entry = self._entries.get(fingerprint(arguments))
        return (entry or self._entry(arguments))(*arguments)

    def compiled_for(self, *arguments: object) -> Callable[..., object] | None:
        """The machine code for arguments of these types, once there is some: to tell types of many arguments
        takes longer than a short kernel.
        """
        return self._entries.get(fingerprint(arguments))

    @property
    def _numba_type_(self) -> object:
        """What numba takes this for in another kernel: a function that it can compile into that one."""
        return self._dispatcher._numba_type_

    @cached_property
    def _dispatcher(self) -> Any:
        known = self.__wrapped__.__globals__
        for name, value in known.items():
            if isinstance(value, Intrinsic):
                known[name] = value.checked if CHECKED and value.checked else value.made
        return _translated(self.__wrapped__, **self._options)

    def _entry(self, arguments: tuple[object, ...]) -> Callable[..., object]:
        kinds = tuple(map(_kind, arguments))
        with LOCK:
            entry = self._linked.get(kinds)
            if entry is None:
                name = machine_code.file_name(f"{self.__module__.rpartition('.')[2]}.{self.__name__}", kinds)
                machine = _kept(name)
                if machine is None and self._is_small(arguments) and state.compile_aside():
                    return self._interpret
                if machine is None:
                    machine = self._compiled(arguments)
                    _keep(name, machine)
                module = sys.modules[self.__module__]
                entry = self._linked[kinds] = machine_code.linker().linked(machine, self.__name__, module)
            self._met.append(kinds)
            self._entries[fingerprint(arguments)] = entry
        return entry

    def _is_small(self, arguments: tuple[object, ...]) -> bool:
        """Whether Python may run the kernel meanwhile."""
        return self._patience > 0 and (self._light or _bytes(arguments) <= _SMALL)

    def _interpret(self, *arguments: object) -> object:
        started = time.thread_time()
        try:
            return self.by_python(*arguments)
        finally:
            self._patience -= time.thread_time() - started

    def by_python(self, *arguments: object) -> object:
        """What the kernel gives where Python runs it, which checks every place in an array."""
        return interpreted.run(self.__wrapped__, arguments)

    def _compiled(self, arguments: tuple[object, ...]) -> Machine:
        types = tuple(map(self._dispatcher.typeof_pyval, arguments))
        self._dispatcher.compile(types)
        result = self._dispatcher.overloads[types]
        if result.environment.consts:
            raise TypeError(f"{self.__name__} gives an array: have one given to it, and fill that")
        code = result.library._get_compiled_object()
        return Machine(result.fndesc.llvm_cpython_wrapper_name, result.fndesc.env_name, code)


class Intrinsic:
    """What numba is told in terms of LLVM, and what that is to Python. It means something in kernels only."""

    def __init__(
        self,
        function: Callable[..., object],
        plain: Callable[..., object],
        checked: Callable[..., object] | None = None,
    ) -> None:
        """`checked` does the same place by place, where `function` would look at several at once."""
        self._function, self.plain = function, plain
        self.checked = checked and Kernel(checked, _nrt=False)

    @cached_property
    def made(self) -> object:
        from numba.extending import intrinsic

        made = intrinsic(self._function)
        made.plain = self.plain  # type: ignore[attr-defined]
        return made


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    """A function as machine code; it cannot make arrays."""
    return cast(Callable[P, T], Kernel(function, _nrt=False))


def light_kernel(function: Callable[P, T]) -> Callable[P, T]:
    """A kernel that looks at little of what it is given, however much that is; it can make arrays."""
    return cast(Callable[P, T], Kernel(function, light=True, _nrt=True))


def allocating_kernel(function: Callable[P, T]) -> Callable[P, T]:
    """A kernel that can make arrays, for itself."""
    return cast(Callable[P, T], Kernel(function, _nrt=True))


def part(function: Callable[P, T]) -> Callable[P, T]:
    """A kernel's part, which becomes one with its callers: a call would cost more than what it does."""
    return cast(Callable[P, T], Kernel(function, forceinline=True, _nrt=False))


def _translated(function: Callable[..., object], **options: bool) -> Any:
    import numba

    return numba.njit(nogil=True, **options)(function)  # type: ignore[call-overload]


def _kind(value: object) -> object:
    """What numba compiles for: equal for values for which the same machine code will do."""
    if isinstance(value, np.ndarray):
        flags = value.flags.num & _FLAGS
        return value.dtype, value.ndim, flags if flags & 1 else value.flags.num & (_FLAGS | 2)
    if isinstance(value, tuple):
        return type(value), tuple(map(_kind, value))
    if isinstance(value, np.void):
        return type(value), value.dtype
    return _SAME.get(type(value), type(value))


def _bytes(values: Iterable[object]) -> int:
    return sum(
        value.nbytes if isinstance(value, np.ndarray) else _bytes(value) if isinstance(value, tuple) else 0
        for value in values
    )


def _kept(name: str) -> Machine | None:
    for folder in state.folders():
        with contextlib.suppress(OSError):
            found = Machine.unpacked((folder / name).read_bytes())
            if found is not None:
                return found
    return None


def _keep(name: str, machine: Machine) -> None:
    """A full disk costs the next process its time, not this one its answer."""
    folder = state.folder()
    if folder is not None:
        made = Path(f"{folder / name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            made.write_bytes(machine.packed())
            made.replace(folder / name)
