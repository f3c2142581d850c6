"""Kernels run by Python, number for number as compiled: so small work is done before there is machine code.

Python's numbers are not numba's: here an array gives Python's own, whose results do not depend on the width
of an item, and 64-bit numbers without a sign wrap around. A place outside an array, which a compiled kernel
would read all the same, is an error here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any, Final

import numpy as np

# A number, a row of numbers, an array of them, or a tuple: as kernels have them, or as Python has them.
Value = Any
_WRAP: Final = 1 << 64
_MASK: Final = _WRAP - 1
_SIGN: Final = 1 << 63


class Unsigned(int):
    """A number of 64 bits without a sign: what becomes too large or negative wraps around."""

    def __invert__(self) -> Unsigned:
        return Unsigned(self ^ _MASK)


def _wrapping(name: str) -> Callable[[int, int], Unsigned]:
    calculate: Callable[[int, int], int] = getattr(int, name)

    def calculated(self: int, other: int) -> Value:
        if isinstance(other, float):
            return getattr(float, name)(float(self), other)
        return Unsigned(calculate(self, other) & _MASK)

    return calculated


for _name in ("add", "sub", "mul", "and", "or", "xor", "lshift", "rshift", "floordiv", "mod"):
    setattr(Unsigned, f"__{_name}__", _wrapping(f"__{_name}__"))
    setattr(Unsigned, f"__r{_name}__", _wrapping(f"__r{_name}__"))


class TableRow:
    """A row of a table, whose fields are Python's numbers."""

    __slots__ = ("_fields",)

    def __init__(self, fields: np.void) -> None:
        object.__setattr__(self, "_fields", fields)

    def __getattr__(self, name: str) -> Value:
        return self._fields[name].item()

    def __setattr__(self, name: str, value: Value) -> None:
        self._fields[name] = value


class Array:
    """An array whose items are Python's numbers."""

    __slots__ = ("_array", "_convert", "_items", "_mask", "_signed", "shape", "size")

    def __init__(self, array: Value) -> None:
        self._array, self.size, self.shape = array, array.size, array.shape
        kind, width = array.dtype.kind, 8 * array.itemsize
        # Rows have no other form, and numbers of 32 bits with a point round as numpy's.
        self._items: Value = array if kind == "V" or (kind == "f" and width == 32) else array.data
        self._convert: Value = Unsigned if array.dtype == np.uint64 else TableRow if kind == "V" else None
        self._mask = (1 << width) - 1 if kind in "iu" else 0
        self._signed = 1 << (width - 1) if kind == "i" else 0

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Value]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, key: Value) -> Value:
        if key.__class__ is slice or (len(self.shape) > 1 and key.__class__ is not tuple):
            return Array(self._array[key])
        found = self._items[key]
        return found if self._convert is None else self._convert(found)

    def __setitem__(self, key: Value, value: Value) -> None:
        if key.__class__ is slice:
            self._array[key] = value
        elif self._mask:
            self._items[key] = ((int(value) + self._signed) & self._mask) - self._signed
        else:
            self._items[key] = value

    def word(self, at: int) -> Unsigned:
        """The eight bytes from a place on."""
        return Unsigned(int.from_bytes(self._eight(at), "little"))

    def put_word(self, at: int, value: int) -> None:
        """Writes eight bytes from a place on."""
        self._eight(at)[:] = value.to_bytes(8, "little")

    def _eight(self, at: int) -> memoryview:
        found: memoryview = self._items[at : at + 8]
        if at < 0 or len(found) < 8:
            raise IndexError(f"eight bytes from {at} on, of {self.size}")
        return found


class _Kind:
    """A kind of number as kernels name it: to make one, or an array of them."""

    def __init__(self, kind: type[np.generic], made: Callable[[Value], Value]) -> None:
        self.kind, self._made = kind, made

    def __call__(self, value: Value) -> Value:
        return self._made(value)


def _signed(value: Value) -> int:
    return value if value.__class__ is int else ((int(value) + _SIGN) & _MASK) - _SIGN


def _array(make: Callable[..., Value]) -> Callable[..., Array]:
    return lambda shape, *rest: Array(make(shape, *(getattr(value, "kind", value) for value in rest)))


# What kernels find under the name of numpy.
_NUMPY: Final = SimpleNamespace(
    int64=_Kind(np.int64, _signed),
    uint64=_Kind(np.uint64, lambda value: Unsigned(int(value) & _MASK)),
    uint32=_Kind(np.uint32, lambda value: int(value) & 0xFFFFFFFF),
    uint8=_Kind(np.uint8, lambda value: int(value) & 0xFF),
    int32=_Kind(np.int32, lambda value: ((int(value) + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)),
    float64=_Kind(np.float64, float),
    float32=_Kind(np.float32, np.float32),
    bool_=_Kind(np.bool_, bool),
    inf=np.inf,
    **{name: _array(getattr(np, name)) for name in ("empty", "zeros", "ones", "full")},
)

_functions: dict[Callable[..., Value], Callable[..., Value]] = {}
_known: dict[int, dict[str, Value]] = {}


def run(function: Callable[..., Value], arguments: tuple[object, ...]) -> object:
    """What a kernel gives, by Python."""
    return _outward(_interpreted(function)(*map(_inward, arguments)))


def _interpreted(function: Value) -> Callable[..., Value]:
    found = _functions.get(function)
    if found is None:
        known = function.__globals__
        if id(known) not in _known:
            names = _known[id(known)] = dict(known)
            names.update({name: _meant(value) for name, value in known.items()})
        found = FunctionType(function.__code__, _known[id(known)], function.__name__, function.__defaults__)
        _functions[function] = found
    return found


def _meant(value: Value) -> Value:
    """What a name of a kernel's module stands for here."""
    if value is np:
        return _NUMPY
    if plain := getattr(value, "plain", None):
        return plain
    if isinstance(value, np.ndarray | np.generic):
        return _inward(value)
    if kernel := getattr(value, "interpreted", None):
        return lambda *arguments: _interpreted(kernel)(*arguments)
    return value


def _inward(value: Value) -> Value:
    if isinstance(value, np.ndarray):
        return Array(value)
    if isinstance(value, tuple):
        items = map(_inward, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, np.generic):
        return Unsigned(value) if isinstance(value, np.uint64) else value.item()
    return value


def _outward(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_outward, value))
    return int(value) if isinstance(value, Unsigned) else value
