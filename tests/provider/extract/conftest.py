from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from indlet.model import Document
from indlet.provider.extract import parts
from indlet.provider.extract.file import File, Part
from indlet.settings import Limits

Parts = Callable[..., list[Part]]
Read = Callable[..., Document]
Zipped = Callable[[Mapping[str, str | bytes]], bytes]


@pytest.fixture
def parts_of() -> Parts:
    """Everything in some bytes; keywords are limits."""

    def run(data: bytes, name: str = "file", **limits: Any) -> list[Part]:
        return list(parts(File(data, name, Limits(**limits))))

    return run


@pytest.fixture
def read(parts_of: Parts) -> Read:
    """The one document in some bytes."""

    def run(data: bytes, name: str = "file", **limits: Any) -> Document:
        [part] = parts_of(data, name, **limits)
        assert isinstance(part, Document)
        return part

    return run


@pytest.fixture
def zipped() -> Zipped:
    def run(members: Mapping[str, str | bytes]) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return out.getvalue()

    return run
