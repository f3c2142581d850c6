"""A node's own name, logo and colours, as the settings say (`[portal]`)."""

from __future__ import annotations

import colorsys
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from indlet.errors import SettingsError
from indlet.settings import Settings

_LOGOS: Final = {
    ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}  # fmt: skip
_MOST: Final = 1024 * 1024  # bytes of a logo
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")
_CONTRAST: Final = 4.8  # WCAG 2 asks for 4.5
_LIGHT, _DARK = (
    (0xF3, 0xF1, 0xEB),
    (0x18, 0x20, 0x24),
)  # the sunken paper of one theme, the surface of the other

Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Brand:
    """What every page shows of a node."""

    name: str
    logo: bytes = b""
    logo_type: str = ""
    style: str = ""  # a style sheet; empty for our own colours
    about: tuple[str, ...] = ()  # paragraphs

    @property
    def version(self) -> str:
        return hashlib.sha256(self.logo + self.style.encode()).hexdigest()[:10]


def brand(settings: Settings) -> Brand:
    """What the settings say, checked; SettingsError names what cannot be used."""
    told = settings.portal
    logo, kind = _logo(told.logo) if told.logo else (b"", "")
    if told.colour and not _COLOUR.fullmatch(told.colour):
        raise SettingsError(
            f'portal.colour is {told.colour!r}: give six hexadecimal digits, such as "#7a1f3d"'
        )
    return Brand(
        told.name or settings.node.name,
        logo,
        kind,
        _style(told.colour) if told.colour else "",
        tuple(" ".join(part.split()) for part in re.split(r"\n\s*\n", told.about) if part.strip()),
    )


def _logo(path: str) -> tuple[bytes, str]:
    kind = _LOGOS.get(Path(path).suffix.lower())
    if kind is None:
        raise SettingsError(f"portal.logo is {path!r}: give a file that ends in {', '.join(_LOGOS)}")
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST + 1)
    except OSError as e:
        raise SettingsError(f"portal.logo: {path} cannot be read: {e.strerror}") from e
    if len(data) > _MOST:
        raise SettingsError(f"portal.logo: {path} is larger than 1 MB; make it smaller")
    return data, kind


def _style(colour: str) -> str:
    """The colours that follow from one, each dark or light enough to be read in its theme."""
    own = (int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16))
    light, dark = _readable(own, _LIGHT, -0.02), _readable(own, _DARK, 0.02)
    by_day = _variables(light, _LIGHT, "#ffffff")
    by_night = _variables(dark, _DARK, "#0b1113")
    return (
        f":root{{{by_day}}}\n"
        f'@media (prefers-color-scheme: dark){{:root:not([data-theme="light"]){{{by_night}}}}}\n'
        f':root[data-theme="dark"]{{{by_night}}}\n'
        f':root[data-theme="light"]{{{by_day}}}\n'
    )


def _variables(accent: Rgb, paper: Rgb, ink: str) -> str:
    tones = [_mixed(accent, paper, share) for share in (0.0, 0.3, 0.55, 0.72, 0.85)]
    return (
        f"--accent:{_hex(accent)};--accent-ink:{ink};--accent-soft:{_hex(_mixed(accent, paper, 0.88))};"
        f"--accent-mid:{_hex(_mixed(accent, paper, 0.35))};"
        + "".join(f"--tone{number}:{_hex(tone)};" for number, tone in enumerate(tones))
    )


def _readable(colour: Rgb, paper: Rgb, step: float) -> Rgb:
    """The colour, made darker or lighter until it stands out from the paper."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*(part / 255 for part in colour))
    while contrast(colour, paper) < _CONTRAST and 0 < lightness + step < 1:
        lightness += step
        red, green, blue = colorsys.hls_to_rgb(hue, lightness, saturation)
        colour = round(red * 255), round(green * 255), round(blue * 255)
    return colour


def contrast(one: Rgb, two: Rgb) -> float:
    """How far two colours stand apart, 1 to 21 (WCAG 2)."""
    high, low = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Rgb) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _mixed(one: Rgb, two: Rgb, share: float) -> Rgb:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, two, strict=True))
    return red, green, blue


def _hex(colour: Rgb) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)
