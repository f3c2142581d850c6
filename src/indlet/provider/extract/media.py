"""Images, sound and video: a record of what the file says of itself, without words of content.

Images by Pillow (EXIF, IPTC, XMP, comments), sound by tinytag (ID3, Vorbis comments, MP4, RIFF). Neither
decodes a picture or a sample: only headers and tags are read.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from indlet.errors import ExtractionError
from indlet.formats.dublin import build_metadata
from indlet.model import Document
from indlet.provider.extract.file import File, parse_xml

Pairs = list[tuple[str, str]]

# Media type -> the only decoder of Pillow that may look at it.
_DECODERS: Final = {
    "image/png": "PNG", "image/gif": "GIF", "image/jpeg": "JPEG", "image/tiff": "TIFF", "image/bmp": "BMP",
    "image/webp": "WEBP", "image/vnd.adobe.photoshop": "PSD",
}  # fmt: skip
# EXIF tags by number (CIPA DC-008; the XP ones are Windows Explorer's, in UTF-16).
_EXIF: Final = {
    0x9C9B: "title", 0x010E: "description", 0x9C9C: "description", 0x013B: "creator", 0x9C9D: "creator",
    0x9C9E: "subject", 0x8298: "rights",
}  # fmt: skip
_EXIF_DETAILS: Final = 0x8769
_TAKEN: Final = (0x9003, 0x0132)  # when the picture was taken, else when the file was changed
# IPTC-IIM 4.2, record 2: data set number -> element.
_IPTC: Final = {
    5: "title", 105: "title", 80: "creator", 25: "subject", 120: "description", 116: "rights", 55: "date",
    90: "coverage", 101: "coverage", 135: "language",
}  # fmt: skip
_SOUND: Final = {
    "title": "title", "artist": "creator", "albumartist": "creator", "composer": "contributor",
    "album": "source", "genre": "subject", "year": "date", "comment": "description",
}  # fmt: skip
_SOUND_MORE: Final = {
    "copyright": "rights", "description": "description", "language": "language", "publisher": "publisher",
    "isrc": "identifier", "keywords": "subject", "lyricist": "contributor", "performer": "contributor",
}  # fmt: skip
_PACKET: Final = 1 << 20
_SEVERAL: Final = re.compile(r"[;\x00]")


def extract_image(file: File) -> Iterator[Document]:
    decoder = _DECODERS.get(file.media_type)
    pairs: Pairs = [("type", "StillImage")]
    if decoder is not None:
        pairs += _image(file.data, decoder)
    yield Document("", build_metadata(pairs), file.media_type, no_text="an image")


def extract_sound(file: File) -> Iterator[Document]:
    yield Document(
        "",
        build_metadata([("type", "Sound"), *_tags(file.data)]),
        file.media_type,
        no_text="a sound recording",
    )


def extract_video(file: File) -> Iterator[Document]:
    pairs: Pairs = [("type", "MovingImage")]
    if file.media_type in ("video/mp4", "video/quicktime"):  # the same atoms as in sound files
        pairs += _tags(file.data)
    yield Document("", build_metadata(pairs), file.media_type, no_text="a video")


def _image(data: bytes, decoder: str) -> Pairs:
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # no pixel is decoded here
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data), formats=[decoder])
            width, height = image.size
            pairs: Pairs = [*_exif(image), *_iptc(image), *_xmp(data)]
            pairs += [("description", _text(image.info.get(key))) for key in ("comment", "Description")]
            pairs += [("title", _text(image.info.get("Title"))), ("creator", _text(image.info.get("Author")))]
    except UnidentifiedImageError as e:
        raise ExtractionError(f"broken {decoder} image") from e
    except MemoryError:
        raise
    except Exception as e:  # Pillow meets broken tags with exceptions of every kind
        raise ExtractionError(f"broken {decoder} image: {e}") from e
    return [*pairs, ("format", f"{width} × {height} pixels")]


def _exif(image: Any) -> Pairs:
    from PIL import Image

    if image.format == "TIFF":
        tags = image.getexif()
    else:  # `getexif` of a PNG would decode all of its pixels to get at what stands after them
        tags = Image.Exif()
        tags.load(image.info.get("exif", b""))
    pairs = [
        (element, part.strip())
        for number, element in _EXIF.items()
        for part in _SEVERAL.split(_text(tags.get(number), wide=number >= 0x9C9B))
    ]
    details: Mapping[int, object] = tags.get_ifd(_EXIF_DETAILS)
    taken = next((t for n in _TAKEN if (t := _text(details.get(n) or tags.get(n)))), "")
    return [*pairs, ("date", taken[:10].replace(":", "-"))]


def _iptc(image: Any) -> Pairs:
    from PIL import IptcImagePlugin

    pairs: Pairs = []
    for (record, number), value in (IptcImagePlugin.getiptcinfo(image) or {}).items():
        if record == 2 and number in _IPTC:
            for part in value if isinstance(value, list) else [value]:
                text = _text(part)
                if number == 55 and re.fullmatch(r"\d{8}", text):
                    text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
                pairs.append((_IPTC[number], text))
    return pairs


def _xmp(data: bytes) -> Pairs:
    """The Dublin Core of the first XMP packet, wherever in the file it stands."""
    from indlet.provider.extract.pdf import xmp_packet

    start = data.find(b"<x:xmpmeta")
    end = data.find(b"</x:xmpmeta>", start, start + _PACKET) if start >= 0 else -1
    if end < 0:
        return []
    try:
        return xmp_packet(parse_xml(data[start : end + len(b"</x:xmpmeta>")]))
    except ExtractionError:
        return []


def _tags(data: bytes) -> Pairs:
    from tinytag import TinyTag, TinyTagException

    try:
        tag = TinyTag.get(file_obj=io.BytesIO(data), image=False)
    except TinyTagException as e:
        raise ExtractionError(f"broken media file: {e}") from e
    except MemoryError:
        raise
    except Exception as e:  # the same as with Pillow
        raise ExtractionError(f"broken media file: {type(e).__name__}: {e}") from e
    pairs = [(element, _text(getattr(tag, name))) for name, element in _SOUND.items()]
    for name, element in _SOUND_MORE.items():
        pairs += [(element, _text(value)) for value in tag.other.get(name, ())]
    if tag.duration:
        pairs.append(("format", f"{int(tag.duration) // 60}:{int(tag.duration) % 60:02} minutes"))
    return pairs


def _text(value: object, wide: bool = False) -> str:
    """A tag's value as text, whatever type the library gives it."""
    if isinstance(value, tuple) and wide:
        value = bytes(part for part in value if isinstance(part, int) and 0 <= part < 256)
    if isinstance(value, bytes):
        if wide:
            return value.decode("utf-16-le", "replace").strip("\x00 ")
        try:
            return value.decode().strip("\x00 ")
        except UnicodeDecodeError:
            return value.decode("latin-1").strip("\x00 ")
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "; ".join(_text(part) for part in value)
    return "" if value is None else str(value).strip("\x00 ")
