"""Legacy Office files (.doc, .xls, .ppt): LibreOffice makes today's format of them, where it is installed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from indlet import process
from indlet.errors import ExtractionError
from indlet.model import Document
from indlet.provider.extract import office
from indlet.provider.extract.file import File
from indlet.provider.extract.sniff import DOC, DOCX, PPT, PPTX, XLS, XLSX

_SHARE: Final = 0.8  # of the seconds of a file; the rest is for reading what comes out


class _Legacy(NamedTuple):
    name: str
    suffix: str
    target: str
    media_type: str


_KINDS: Final = {
    DOC: _Legacy("legacy Word document (.doc)", "doc", "docx", DOCX),
    XLS: _Legacy("legacy Excel workbook (.xls)", "xls", "xlsx", XLSX),
    PPT: _Legacy("legacy PowerPoint presentation (.ppt)", "ppt", "pptx", PPTX),
}


def extract(file: File) -> Iterator[Document]:
    kind = _KINDS[file.media_type]
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None:
        raise ExtractionError(
            f"unsupported: {kind.name}; install LibreOffice where this node runs, or convert it to "
            f"{kind.target.upper()} or PDF"
        )
    data = _converted(program, file, kind)
    for document in office.extract(File(data, file.name, file.limits, kind.media_type, file.depth + 1)):
        yield replace(document, media_type=file.media_type)


def _converted(program: str, file: File, kind: _Legacy) -> bytes:
    """The file in today's format. Macros are not run: a profile that is new allows none."""
    with tempfile.TemporaryDirectory(prefix="indlet-office-") as place:
        folder = Path(place)
        # The name is ours: a stranger's might be an option.
        (folder / f"in.{kind.suffix}").write_bytes(file.data)
        command = [
            program, f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--norestore",
            "--nologo", "--nolockcheck", "--convert-to", kind.target, "--outdir", str(folder / "out"),
            f"in.{kind.suffix}",
        ]  # fmt: skip
        try:
            process.run_program(command, folder, file.limits.seconds * _SHARE)
            found = folder / "out" / f"in.{kind.target}"
            if found.stat().st_size > file.limits.inflated_bytes:
                raise ExtractionError(f"{kind.name}: becomes larger than the limit (inflated_bytes)")
            return found.read_bytes()
        except OSError as e:
            reason = "LibreOffice cannot read it" if isinstance(e, FileNotFoundError) else str(e)
            raise ExtractionError(f"{kind.name}: {reason}; convert it to {kind.target.upper()} or PDF") from e
