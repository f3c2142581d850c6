"""Machine code that numba has made, loaded and called without numba.

Importing numba and having it load what it has cached takes a process 0.7 s; LLVM links the same code in
0.05 s. What compiled code calls is in numba's extension modules, which stand on their own; only their
package, which imports the compiler, is left out.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from threading import RLock
from types import ModuleType
from typing import Final, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_PACKAGES: Final = ("numba", "numba.core", "numba.core.runtime")
_NUMBERS: Final = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_SUM: Final = 4  # bytes of a check sum
# One thread at a time imports, compiles and links.
LOCK: Final = RLock()


class Machine(NamedTuple):
    """A function as numba has compiled it, with the names of what Python calls and of its environment."""

    wrapper: str
    environment: str
    code: bytes

    def packed(self) -> bytes:
        body = f"{self.wrapper}\n{self.environment}\n".encode() + self.code
        return zlib.crc32(body).to_bytes(_SUM, "big") + body

    @staticmethod
    def unpacked(content: bytes) -> Machine | None:
        """None for what was not written in full."""
        body = content[_SUM:]
        if not body or zlib.crc32(body).to_bytes(_SUM, "big") != content[:_SUM]:
            return None
        wrapper, environment, code = body.split(b"\n", 2)
        return Machine(wrapper.decode(), environment.decode(), code)


@contextmanager
def _without_the_compiler() -> Iterator[None]:
    """Packages that hold numba's extension modules and run nothing of their own."""
    found = importlib.util.find_spec("numba")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'numba'", name="numba")
    for name in _PACKAGES:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [f"{found.submodule_search_locations[0]}{name[5:].replace('.', '/')}"]
    try:
        yield
    finally:
        # Of a copy: other threads may be importing.
        for name in list(sys.modules):
            if name.partition(".")[0] == "numba":
                del sys.modules[name]


def _parts() -> list[ModuleType]:
    names = ("numba._dispatcher", "numba._helperlib", "numba._dynfunc", "numba.core.runtime._nrt_python")
    with LOCK:
        if sys.modules.get("numba") is not None:
            return [importlib.import_module(name) for name in names]
        with _without_the_compiler():
            parts = [importlib.import_module(name) for name in names]
        # What numba does when it is imported, and will do again if it is.
        parts[0].typeof_init(type("Omitted", (), {}), dict.fromkeys(_NUMBERS, 0))
        return parts


_dispatcher, _helpers, _functions, _runtime = _parts()
# Tells arguments of different types apart, as numba does.
fingerprint: Callable[[tuple[object, ...]], bytes] = _dispatcher.compute_fingerprint


class _Linker:
    """LLVM, with the names that compiled code refers to."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm  # type: ignore[import-untyped]

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.add_symbol("_Py_NoneStruct", id(None))
        for part in (_helpers, _functions):
            for name, address in part.c_helpers.items():
                llvm.add_symbol(f"numba_{name}", address)
        for name, address in _runtime.c_helpers.items():
            llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._object = llvm.ObjectFileRef.from_data
        features = llvm.get_host_cpu_features().flatten()
        self.target = "\n".join(
            (version("numba"), version("llvmlite"), llvm.get_host_cpu_name(), features, sys.version)
        )

    def linked(self, machine: Machine, name: str, module: ModuleType) -> Callable[..., object]:
        self._engine.add_object_file(self._object(machine.code))
        self._engine.finalize_object()
        environment = _functions.Environment(vars(module))
        place = self._engine.get_global_value_address(machine.environment)
        ctypes.c_void_p.from_address(place).value = id(environment)
        address = self._engine.get_function_address(machine.wrapper)
        made: Callable[..., object] = _functions.make_function(
            module, name, name, address, environment, (self._engine, environment)
        )
        return made


@cache
def linker() -> _Linker:
    return _Linker()


def file_name(function: str, kinds: object) -> str:
    """Where the machine code of a function for arguments of some types is kept, for this processor."""
    told = hashlib.sha256(f"{linker().target}\n{kinds!r}".encode()).hexdigest()
    return f"{function}-{told[:24]}"


def compiled_for(kernel: Callable[P, T], *arguments: P.args, **_: P.kwargs) -> Callable[P, T] | None:
    """A kernel's machine code for arguments of the types of these and no others; None until it is loaded."""
    found: Callable[P, T] | None = kernel.compiled_for(*arguments)  # type: ignore[attr-defined]
    return found
