"""Images, sound and video are records of what they say of themselves."""

from __future__ import annotations

import io
import struct
import wave
import zlib

import pytest
from PIL import Image

from indlet.errors import ExtractionError
from indlet.model import Document
from indlet.provider.extract import parts
from indlet.provider.extract.file import File
from indlet.settings import Limits


def document(data: bytes, name: str) -> Document:
    (found,) = parts(File(data, name, Limits()))
    assert isinstance(found, Document)
    return found


def image(kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "navy").save(out, kind, **options)
    return out.getvalue()


def test_exif_of_a_photograph() -> None:
    exif = Image.Exif()
    exif[0x010E] = "Ice on the harbour"
    exif[0x013B] = "Ada Wells; Ben Moor"
    exif[0x8298] = "CC BY 4.0"
    exif[0x9C9B] = "Winter".encode("utf-16-le")
    exif.get_ifd(0x8769)[0x9003] = "2019:02:03 11:12:13"
    exif.get_ifd(0x8825)[2] = (53.0, 33.0, 0.0)  # where it was taken stays private
    found = document(image("JPEG", exif=exif), "DSC_0001.jpg")
    assert found.media_type == "image/jpeg"
    assert found.text == "" and found.no_text == "an image"
    assert found.metadata["title"] == ["Winter"]
    assert found.metadata["creator"] == ["Ada Wells", "Ben Moor"]
    assert found.metadata["description"] == ["Ice on the harbour"]
    assert found.metadata["date"] == ["2019-02-03"]
    assert found.metadata["rights"] == ["CC BY 4.0"]
    assert found.metadata["type"] == ["StillImage"]
    assert "40 × 30 pixels" in found.metadata["format"]
    assert "53" not in repr(found.metadata)


def test_xmp_of_an_image() -> None:
    packet = (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        b'<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title><rdf:Alt>'
        b'<rdf:li xml:lang="x-default">Plan of the mill</rdf:li></rdf:Alt></dc:title>'
        b"<dc:subject><rdf:Bag><rdf:li>mills</rdf:li><rdf:li>water</rdf:li></rdf:Bag></dc:subject>"
        b"</rdf:Description></rdf:RDF></x:xmpmeta>"
    )
    found = document(image("TIFF") + packet, "mill.tif")
    assert found.metadata["title"] == ["Plan of the mill"]
    assert found.metadata["subject"] == ["mills", "water"]


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [("PNG", "image/png"), ("GIF", "image/gif"), ("TIFF", "image/tiff"), ("BMP", "image/bmp"),
     ("WEBP", "image/webp")],
)  # fmt: skip
def test_an_image_without_tags_is_titled_by_its_name(kind: str, media_type: str) -> None:
    found = document(image(kind), "north_wall-2.bin")
    assert (found.media_type, found.metadata["title"]) == (media_type, ["north wall 2"])


def frame(name: bytes, text: str) -> bytes:
    body = b"\x03" + text.encode()
    return name + struct.pack(">I", len(body)) + b"\0\0" + body


def test_id3_of_a_recording() -> None:
    frames = frame(b"TIT2", "Rain") + frame(b"TPE1", "The Shore") + frame(b"TYER", "1999")
    size = bytes((len(frames) >> shift) & 0x7F for shift in (21, 14, 7, 0))
    found = document(b"ID3\x03\x00\x00" + size + frames + b"\xff\xfb\x90\x00" + bytes(2000), "01.mp3")
    assert found.media_type == "audio/mpeg" and found.no_text == "a sound recording"
    assert found.metadata["title"] == ["Rain"]
    assert found.metadata["creator"] == ["The Shore"]
    assert found.metadata["date"] == ["1999"]
    assert found.metadata["type"] == ["Sound"]


def test_length_of_a_recording() -> None:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(100)
        sound.writeframes(bytes(100 * 65))
    found = document(out.getvalue(), "interview.wav")
    assert found.media_type == "audio/wav"
    assert "1:05 minutes" in found.metadata["format"]


def test_a_video_is_a_record() -> None:
    found = document(b"\x1aE\xdf\xa3" + bytes(range(256)) * 8, "launch.mkv")
    assert (found.media_type, found.no_text) == ("video/x-matroska", "a video")
    assert found.metadata["type"] == ["MovingImage"]


def test_a_picture_of_a_million_megapixels_is_not_decoded() -> None:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1_000_000, 1_000_000, 8, 2, 0, 0, 0))
    found = document(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", bytes(20)) + chunk(b"IEND", b""), "b.png")
    assert "1000000 × 1000000 pixels" in found.metadata["format"]


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + bytes(50), b"\xff\xd8\xff" + bytes(50)])
def test_a_broken_image_is_a_failure_that_names_it(data: bytes) -> None:
    with pytest.raises(ExtractionError, match=r"broken (PNG|JPEG) image"):
        list(parts(File(data, "x", Limits())))
