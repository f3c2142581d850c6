"""Small pictures as SVG, drawn on the server: no script, no style attribute; colours come by class.

Each function gives plain data with coordinates; the templates write the elements, so that text is escaped
in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    count: int
    x: float
    y: float
    width: float
    height: float
    first: int
    last: int

    @property
    def drawn(self) -> Markup:
        return Markup(  # noqa: S704 - numbers only
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}"/>'
        )


@dataclass(frozen=True, slots=True)
class Histogram:
    width: float
    height: float
    bars: tuple[Bar, ...]
    first: int
    last: int
    start: int  # the first year of the first bar
    span: int  # years of a bar
    step: float  # from one bar to the next
    shade: tuple[float, float] | None = None  # where the chosen years begin, and how wide they are


def _without_strays(counts: Mapping[int, int]) -> Mapping[int, int]:
    """The years without those at either end that hardly any record has and that would flatten all others.

    One record, or as many as one in two hundred, may be left out, if that at least halves the span.
    """
    years, total = sorted(counts), sum(counts.values())
    left = max(total // 200, 1 if total >= 10 else 0)
    low, high = 0, len(years) - 1
    while low < high:
        below, above = years[low + 1] - years[low], years[high] - years[high - 1]
        at = low if below >= above else high
        if counts[years[at]] > left:
            break
        left -= counts[years[at]]
        low, high = (low + 1, high) if at == low else (low, high - 1)
    kept = years[low : high + 1]
    if 2 * (kept[-1] - kept[0] + 1) > years[-1] - years[0] + 1:
        return counts
    return {year: counts[year] for year in kept}


def histogram(
    counts: Mapping[int, int],
    width: float = 240.0,
    height: float = 64.0,
    chosen: tuple[int | None, int | None] = (None, None),
) -> Histogram | None:
    """Bars of records a year; of spans of years where there would be too many bars to click. The chosen
    years, from one to another, are shaded.
    """
    if not counts:
        return None
    shown = _without_strays(counts)
    first, last = min(shown), max(shown)
    span = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10_000) if (last - first) // s < 30)
    start = first - first % span
    slots = (last - start) // span + 1
    totals = [0] * slots
    for year, count in counts.items():  # strays count with the bar that is next to them
        totals[min(max((year - start) // span, 0), slots - 1)] += count
    most = max(totals)
    # A single year should not fill the whole picture with one block.
    step = min(width / slots, 32.0)
    bars = []
    for i, count in enumerate(totals):
        if count:
            tall = max(2.0, round(height * count / most, 2))
            a = start + i * span
            b = a + span - 1
            if i == 0:
                a = min(a, min(counts))
            if i == slots - 1:
                b = max(b, max(counts))
            label = str(a) if a == b else f"{a}–{b}"
            x, wide = round(i * step, 2), round(max(1.0, step - 1), 2)
            bars.append(Bar(label, count, x, round(height - tall, 2), wide, tall, a, b))
    shade = None
    if chosen != (None, None):
        low, high = (start if chosen[0] is None else chosen[0]), (last if chosen[1] is None else chosen[1])
        left = min(max((low - start) // span, 0), slots - 1)
        right = min(max((high - start) // span, left), slots - 1)
        shade = round(left * step, 2), round((right - left + 1) * step, 2)
    return Histogram(width, height, tuple(bars), first, last, start, span, round(step, 3), shade)


@dataclass(frozen=True, slots=True)
class BarSegment:
    term: str
    share: float  # of the whole, 0 to 1
    x: float
    width: float
    tone: int  # 0 to 4: a class of the style sheet


def shares(parts: Sequence[tuple[str, float]], width: float = 100.0) -> tuple[BarSegment, ...]:
    """One thin bar cut by what each part adds; parts that add nothing or take away are left out."""
    whole = sum(value for _, value in parts if value > 0)
    if whole <= 0:
        return ()
    found, x = [], 0.0
    for i, (term, value) in enumerate(sorted(parts, key=lambda part: -part[1])):
        if value > 0:
            wide = width * value / whole
            found.append(BarSegment(term, value / whole, round(x, 2), round(wide, 2), min(i, 4)))
            x += wide
    return tuple(found)


@dataclass(frozen=True, slots=True)
class BarRow:
    label: str
    value: float
    count: int
    y: float
    width: float


def bars(
    values: Sequence[tuple[str, float, int]], width: float = 160.0, step: float = 22.0
) -> tuple[BarRow, ...]:
    """Horizontal bars, the longest as wide as the picture."""
    most = max((value for _, value, _ in values), default=0.0)
    if most <= 0:
        return ()
    return tuple(
        BarRow(label, value, count, i * step, round(max(1.0, width * value / most), 2))
        for i, (label, value, count) in enumerate(values)
    )


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line over time: its points, the area under it, and what stands at its ends."""

    width: float
    height: float
    points: tuple[Point, ...]
    path: str
    area: str
    low: float
    high: float
    last: float


def line(
    values: Sequence[tuple[float, float]], width: float = 240.0, height: float = 48.0
) -> PlotLine | None:
    """A line through (time, value) pairs, from zero at the foot to the highest value at the top."""
    if not values:
        return None
    ordered = sorted(values)
    start, end = ordered[0][0], ordered[-1][0]
    high = max(value for _, value in ordered)
    margin = 3.0
    usable = height - 2 * margin
    points = []
    for at, value in ordered:
        x = width / 2 if end == start else margin + (width - 2 * margin) * (at - start) / (end - start)
        y = height - margin - (usable * value / high if high > 0 else 0.0)
        points.append((round(x, 2), round(y, 2)))
    path = "M" + " L".join(f"{x} {y}" for x, y in points)
    area = f"{path} L{points[-1][0]} {height} L{points[0][0]} {height} Z"
    low = min(value for _, value in ordered)
    return PlotLine(width, height, tuple(points), path, area, low, high, ordered[-1][1])


@dataclass(frozen=True, slots=True)
class Movement:
    """A record's way from its place in one ranking to its place in the next."""

    identifier: str
    path: str
    change: int  # places gained (positive) or lost
    kind: str  # "same", "up", "down"


def movements(
    left: Sequence[str], right: Sequence[str], row: float, top: float, width: float = 72.0
) -> tuple[Movement, ...]:
    """Lines between two rankings whose rows are equally high, for every record that stands in both."""
    places = {identifier: i for i, identifier in enumerate(right)}
    found = []
    for i, identifier in enumerate(left):
        j = places.get(identifier)
        if j is not None:
            a, b = top + i * row, top + j * row
            half = width / 2
            path = f"M0 {a:g} C{half:g} {a:g} {half:g} {b:g} {width:g} {b:g}"
            kind = "same" if i == j else "up" if j < i else "down"
            found.append(Movement(identifier, path, i - j, kind))
    return tuple(found)


TICK: Final = 4  # from one tick to the next
TICK_HEIGHT: Final = 16


@dataclass(frozen=True, slots=True)
class Ticks:
    """A row of ticks, oldest first: a path for each tone. A bad one is the tallest, whatever its colour."""

    width: int
    height: int
    paths: tuple[tuple[str, str], ...]  # tone, path


def ticks(tones: Sequence[str], most: int) -> Ticks:
    """Ticks of the tones good, part and bad, flush right in a row that has room for `most`."""
    heights = {"good": 9, "part": 12}
    paths = dict[str, str]()
    for place, tone in enumerate(tones, most - len(tones)):
        height = heights.get(tone, TICK_HEIGHT)
        step = f"M{place * TICK} {TICK_HEIGHT - height}h3v{height}h-3z"
        paths[tone] = paths.get(tone, "") + step
    return Ticks(most * TICK, TICK_HEIGHT, tuple(paths.items()))
