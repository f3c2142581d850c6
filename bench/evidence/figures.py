"""Plots as small SVG files, in one style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

# Told apart by people who do not see all colours, too (Okabe & Ito 2008).
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555", "#000000")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE: Final[dict[Any, Any]] = {
    "figure.facecolor": "white", "savefig.facecolor": "white", "axes.facecolor": "white",
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#e4e4e4", "grid.linewidth": 0.7, "axes.edgecolor": "#777777",
    "axes.labelcolor": "#222222", "xtick.color": "#444444", "ytick.color": "#444444",
    "font.family": "sans-serif", "font.size": 10, "axes.titlesize": 11, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.8,
    "lines.markersize": 5, "svg.fonttype": "none", "svg.hashsalt": "indlet",
}  # fmt: skip


# For readers whose screen is dark: ground, grid, axes and words change their shade, and so do the two darkest
# colours.
DARK: Final = (
    "<style>@media (prefers-color-scheme: dark) {"
    'text { fill: #dddddd !important } [style*="fill: #ffffff"] { fill: #15181c !important }'
    + "".join(
        f'[style*="fill: {light}"] {{ fill: {dark} !important }} '
        f'[style*="stroke: {light}"] {{ stroke: {dark} !important }}'
        for light, dark in {
            "#e4e4e4": "#33383f", "#777777": "#8a929c", "#444444": "#b9c0c8", "#333333": "#d0d5da",
            "#0072b2": "#4ba3dd", "#555555": "#9aa1a9", "#000000": "#eeeeee",
        }.items()
    )
    + "}</style>"
)  # fmt: skip


class Figures:
    """Where an experiment puts its plots. Each becomes `<name>.svg` beside the page."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def plot(
        self, name: str, columns: int = 1, size: tuple[float, float] = (8.4, 3.6), **more: Any
    ) -> Iterator[Any]:
        """The axes of a plot (one, or a row of them), written when the block ends."""
        import matplotlib

        matplotlib.use("svg")
        from matplotlib import pyplot

        with pyplot.rc_context(STYLE):
            figure, axes = pyplot.subplots(1, columns, figsize=size, layout="constrained", **more)
            try:
                yield axes
                self._folder.mkdir(parents=True, exist_ok=True)
                place = self._folder / f"{name}.svg"
                figure.savefig(place, metadata={"Date": None})
                drawn = place.read_text()
                place.write_text(drawn.replace("</metadata>", f"</metadata>\n {DARK}", 1))
            finally:
                pyplot.close(figure)


def picture(name: str, words: str) -> str:
    """A plot in the page; the words are for those who do not see it."""
    return f"![{words}]({name}.svg)"


def bars(
    axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[float]], *, labels: str = ""
) -> None:
    """Bars side by side: a group for each name, a colour for each series."""
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = [place + (number - (len(series) - 1) / 2) * width for place in range(len(groups))]
        drawn = axes.bar(places, values, width * 0.92, label=name, color=COLOURS[number])
        if labels:
            axes.bar_label(drawn, fmt=labels, fontsize=7, padding=1)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(axis="x", visible=False)


def logarithmic(axes: Any, which: str = "xy") -> None:
    """Logarithmic axes with plain numbers: 1, 2, 5, 10 …, or 1, 10, 100 … where there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for letter in which:
        getattr(axes, f"set_{letter}scale")("log")
        low, high = getattr(axes, f"get_{letter}lim")()
        axis = getattr(axes, f"{letter}axis")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 2000 and letter == "y" else (1,)))
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,g}" if value < 1e4 else _short(value))
        )
        axis.set_minor_formatter(NullFormatter())


def _short(value: float) -> str:
    return f"{value / 1e6:g} M" if value >= 1e6 else f"{value / 1e3:g} k"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1) -> str:
    """A Markdown table; columns after the first `left` are numbers and stand right."""
    lines = ["| " + " | ".join(headings) + " |"]
    lines.append("|" + "|".join("---" if n < left else "--:" for n in range(len(headings))) + "|")
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
