"""The words of scanned pages, by Tesseract: `crawl.limits.ocr_pages` says how many it may read; usually 0."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

import pypdfium2

from indlet import process
from indlet.errors import ExtractionError
from indlet.provider.extract.file import File, Text

_DOTS: Final = 200 / 72  # 200 dots an inch; PDF counts in 72nds
_PIXELS: Final = 40_000_000  # of a page; a larger one is rendered coarser
_SHARE: Final = 0.8  # of the seconds of a file
_LANGUAGES = re.compile(r"[A-Za-z_]{3,20}(\+[A-Za-z_]{3,20}){0,9}")


def scanned_words(pdf: pypdfium2.PdfDocument, file: File) -> str:
    """The text of the first pages; nothing where it is not asked for, or there is no Tesseract."""
    limits = file.limits
    program = shutil.which("tesseract") if limits.ocr_pages > 0 else None
    if program is None:
        return ""
    if not _LANGUAGES.fullmatch(limits.ocr_languages):
        raise ExtractionError(
            f"crawl.limits.ocr_languages {limits.ocr_languages!r}: name them as Tesseract does, as 'eng+deu'"
        )
    end = time.monotonic() + limits.seconds * _SHARE
    text = Text(limits)
    with tempfile.TemporaryDirectory(prefix="indlet-ocr-") as place:
        for number in range(min(len(pdf), limits.ocr_pages)):
            left = end - time.monotonic()
            if left <= 0:
                break
            (Path(place) / "page.pgm").write_bytes(_picture(pdf, number))
            command = [program, "page.pgm", "stdout", "-l", limits.ocr_languages]
            try:
                text.add(process.run_program(command, Path(place), left).decode("utf-8", "replace"))
            except TimeoutError:
                break
            except OSError as e:
                raise ExtractionError(f"scanned pages: {e}; are its languages installed?") from e
    return str(text)


def _picture(pdf: pypdfium2.PdfDocument, number: int) -> bytes:
    """A page in shades of grey, as PGM."""
    page = pdf[number]
    try:
        width, height = page.get_size()
        scale = min(_DOTS, (_PIXELS / max(width * height, 1.0)) ** 0.5)
        bitmap = page.render(scale=scale, grayscale=True)
        try:
            stride, rows = bitmap.stride, memoryview(bitmap.buffer).cast("B")
            lines = (bytes(rows[y * stride : y * stride + bitmap.width]) for y in range(bitmap.height))
            return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(lines)
        finally:
            bitmap.close()
    except pypdfium2.PdfiumError as e:
        raise ExtractionError(f"scanned pages: page {number + 1} cannot be rendered: {e}") from e
    finally:
        page.close()
