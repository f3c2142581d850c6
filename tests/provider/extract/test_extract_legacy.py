"""Legacy Office files by LibreOffice, scanned pages by Tesseract: where these are installed, where not."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from indlet.errors import ExtractionError
from indlet.model import Document
from indlet.process import run_program
from indlet.provider.extract import parts
from indlet.provider.extract.file import File
from indlet.settings import Limits

LIMITS = Limits(seconds=120.0)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
needs_office = pytest.mark.skipif(not shutil.which("soffice"), reason="needs LibreOffice")
needs_tesseract = pytest.mark.skipif(not shutil.which("tesseract"), reason="needs Tesseract")


def one(data: bytes, name: str, limits: Limits = LIMITS) -> Document:
    (part,) = parts(File(data, name, limits))
    assert isinstance(part, Document)
    return part


def stub(stream: str) -> bytes:
    return OLE + bytes(504) + stream.encode("utf-16-le") + bytes(100)


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        ("WordDocument", r"legacy Word document \(\.doc\); install LibreOffice"),
        ("Workbook", r"legacy Excel workbook \(\.xls\); install LibreOffice"),
        ("PowerPoint Document", r"legacy PowerPoint presentation \(\.ppt\); install LibreOffice"),
        ("VisioDocument", "legacy Visio"),
    ],
)
def test_without_libreoffice_a_failure_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stream: str, told: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExtractionError, match=told):
        one(stub(stream), "x.doc")


@needs_office
def test_legacy_files_are_read_by_libreoffice(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The flutter of aeroelastic wings in Überschall flow.\n")
    (tmp_path / "b.csv").write_text("wing,flutter\nspan,42\n")
    for kind, name in (("doc:MS Word 97", "a.txt"), ("xls:MS Excel 97", "b.csv")):
        profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
        command = ["soffice", profile, "--headless", "--convert-to", kind, name]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    document = one((tmp_path / "a.doc").read_bytes(), "a.doc")
    assert "flutter of aeroelastic wings in Überschall flow" in document.text
    assert document.media_type == "application/msword"
    sheet = one((tmp_path / "b.xls").read_bytes(), "b.xls")
    assert {"wing", "flutter", "span", "42"} <= set(sheet.text.split())
    assert sheet.media_type == "application/vnd.ms-excel"
    # What took too long is ended, and said.
    with pytest.raises(ExtractionError, match=r"legacy Word document \(\.doc\): .* took longer"):
        one((tmp_path / "a.doc").read_bytes(), "a.doc", replace(LIMITS, seconds=0.05))


@pytest.fixture(scope="module")
def scan() -> bytes:
    """A PDF whose page is a picture of words."""
    image = pytest.importorskip("PIL.Image")
    draw, font = pytest.importorskip("PIL.ImageDraw"), pytest.importorskip("PIL.ImageFont")
    page = image.new("L", (1600, 500), 255)
    draw.Draw(page).text((60, 180), "The flutter of elastic wings", 0, font.load_default(90))
    out = io.BytesIO()
    page.save(out, "PDF", resolution=150)
    return out.getvalue()


def test_scanned_pages_are_told_apart_and_not_read_unless_asked(scan: bytes) -> None:
    document = one(scan, "scan.pdf")
    assert (document.text.strip(), document.no_text) == ("", "scanned pages")


@needs_tesseract
def test_scanned_pages_are_read_where_asked(scan: bytes) -> None:
    document = one(scan, "scan.pdf", replace(LIMITS, ocr_pages=3))
    assert {"flutter", "elastic", "wings"} <= set(document.text.split())
    assert document.no_text == "scanned pages, read by OCR"
    with pytest.raises(ExtractionError, match="languages"):
        one(scan, "scan.pdf", replace(LIMITS, ocr_pages=3, ocr_languages="nonexistent"))
    with pytest.raises(ExtractionError, match="ocr_languages"):
        one(scan, "scan.pdf", replace(LIMITS, ocr_pages=3, ocr_languages="--psm"))


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; wait"
    with pytest.raises(TimeoutError, match="took longer"):
        run_program(["sh", "-c", script], tmp_path, 1.0)
    child = int((tmp_path / "child").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(1000):
            os.kill(child, 0)
            state = Path(f"/proc/{child}/stat")
            if not state.exists() or ") Z " in state.read_text():
                raise ProcessLookupError
    with pytest.raises(OSError, match="status 3"):
        run_program(["sh", "-c", "exit 3"], tmp_path, 5.0)
