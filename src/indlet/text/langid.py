"""The statistical model of py3langid, unpacked for the core (`core/src/text/langid.rs`).

The model comes compressed, and takes half a second of a processor to unpack. It is unpacked once, into a file
beside this module or in the user's cache folder, and mapped from there: only what a text touches is read.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import struct
import tempfile
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from indlet import _core

# The arrays that the core reads, and their types; then the labels of the classes.
_ARRAYS: Final = {
    "ptc": "<f2", "pc": "<f4", "nextmove": "<u4", "nextmove_row": "<u2", "out_feat": "<i4",
}  # fmt: skip
_CLASSES: Final = "classes"


@cache
def model() -> _core.LanguageModel | None:
    """The model; None where it cannot be unpacked."""
    spec = find_spec("py3langid")
    if spec is None or spec.origin is None:
        return None
    source = Path(spec.origin).parent / "data" / "model.npz.xz"
    about = source.stat()
    name = f"langid-3-{about.st_size}-{about.st_mtime_ns}.npz"
    for folder in _folders():
        with contextlib.suppress(OSError, ValueError, zipfile.BadZipFile):
            return _open(folder / name)
    for folder in _folders():
        with contextlib.suppress(OSError, ValueError, zipfile.BadZipFile):
            _unpack(source, folder / name)
            return _open(folder / name)
    return None


def _folders() -> tuple[Path, Path]:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(__file__).parent / "__pycache__", Path(home) / "indlet"


def _unpack(source: Path, target: Path) -> None:
    """Write the archive without its compression; it is there as a whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        try:
            with lzma.open(source) as packed:
                while piece := packed.read(1 << 20):
                    file.write(piece)
            Path(file.name).rename(target)
        except BaseException:
            Path(file.name).unlink()
            raise


def _open(path: Path) -> _core.LanguageModel:
    """The model in an archive of arrays (npz), which are stored as they are."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        spans = [_span(archive, file.fileno(), name, kind) for name, kind in _ARRAYS.items()]
        begin, end = _span(archive, file.fileno(), _CLASSES, "<U3")
        labels = os.pread(file.fileno(), end - begin, begin).decode("utf-32-le")
    classes = [labels[at : at + 3].rstrip("\0") for at in range(0, len(labels), 3)]
    return _core.LanguageModel(path, spans, classes)


def _span(archive: zipfile.ZipFile, file: int, name: str, kind: str) -> tuple[int, int]:
    """Where the items of an array are: after the header of the member, and that of the array."""
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed")
    header = os.pread(file, 30, member.header_offset)
    size, extra = struct.unpack("<HH", header[26:30])
    begin = member.header_offset + 30 + size + extra
    array = os.pread(file, 10, begin)
    length = 10 + int(struct.unpack("<H", array[8:10])[0])
    if f"'descr': '{kind}'" not in os.pread(file, length, begin).decode("latin-1"):
        raise ValueError(f"{name} is not of type {kind}")
    return begin + length, begin + member.file_size
