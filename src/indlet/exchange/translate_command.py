"""`indlet translate`: records of one format in another, and what the translation loses."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import BinaryIO, Final

import click

from indlet.cli.show import amount, say
from indlet.errors import SettingsError
from indlet.exchange.subject_translation import subject_translation
from indlet.exchange.translate import Translator, format_named
from indlet.formats.crosswalk import Lost
from indlet.formats.record import Broken

# A file is read as a whole.
FILE_BYTES: Final = 1 << 30
_SHOWN: Final = 60


@click.command()
@click.option("--from", "source", required=True, metavar="FORMAT", help="Format of the files.")
@click.option("--to", "target", required=True, metavar="FORMAT", help="Format to translate to.")
@click.option("--mapping", default="", metavar="TABLE", help="A table on top of that of the files' format.")
@click.option("--to-mapping", default="", metavar="TABLE", help="A table on top of that of the other format.")
@click.option("--subjects", multiple=True, metavar="TABLE", help="Subjects by this table, or by two in turn.")
@click.option("--words", is_flag=True, help="Subjects as the words that their codes stand for in the table.")
@click.option("--report", is_flag=True, help="Show what was lost, by field, instead of the records.")
@click.option("--output", type=click.File("wb", lazy=True), default="-", metavar="FILE", help="Write there.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
def translate(
    source: str,
    target: str,
    mapping: str,
    to_mapping: str,
    subjects: tuple[str, ...],
    words: bool,
    report: bool,
    output: BinaryIO,
    files: tuple[Path, ...],
) -> None:
    """Translate records from one metadata format to another.

    FORMAT is a prefix (oai_dc, dcterms, marc21, mods, rfc1807, cosati, oai_marc), marcxml (MARC in files of
    XML), marc8 (MARC in MARC-8) or table:NAME, any text that a table describes. TABLE is a file, or a table
    that comes with indlet (larc). A record that cannot be read, mapped or written is named on standard error,
    the others are translated; the status is then 3.
    """
    method = "words" if words else "codes"
    translator = Translator(
        format_named(source), format_named(target), mapping, to_mapping, subject_translation(subjects, method)
    )
    head, tail = translator.target.around
    lost: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], str] = {}
    taken = broken = 0
    if not report:
        output.write(head)
    for path in files:
        for one in translator.records(_read(path)):
            if isinstance(one, Broken):
                broken += not one.is_warning
                say(f"{path}{'' if one.is_warning else f'#{one.number}'}: {one.reason}", err=True)
                continue
            taken += 1
            if one.warning:
                say(f"{path}#{one.number}: {one.warning}", err=True)
            _count(one.lost, lost, example)
            if not report:
                output.write(one.data)
    if not report:
        output.write(tail)
    else:
        _show(taken, broken, lost, example)
    if broken:
        sys.exit(3)


def _read(path: Path) -> bytes:
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(FILE_BYTES)
        if path.stat().st_size > FILE_BYTES:
            raise SettingsError(f"{path}: more than {FILE_BYTES} bytes; split the file")
        return path.read_bytes()
    except OSError as e:
        raise SettingsError(f"{path}: {e.strerror}; give a file of records") from e


def _count(
    lost: tuple[Lost, ...], counts: Counter[tuple[str, str]], example: dict[tuple[str, str], str]
) -> None:
    for each in lost:
        counts[each.where, each.reason] += 1
        example.setdefault((each.where, each.reason), each.value)


def _show(
    taken: int, broken: int, lost: Counter[tuple[str, str]], example: dict[tuple[str, str], str]
) -> None:
    say(f"{amount(taken, 'record')} translated, {broken} failed")
    if not lost:
        say("nothing was lost")
        return
    say(f"{'field':<24} {'values':>7}  {'why':<28} for example")
    for (where, why), count in sorted(lost.items(), key=lambda item: (-item[1], item[0])):
        value = " ".join(example[where, why].split())
        value = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
        say(f"{where[:24]:<24} {count:>7}  {why[:28]:<28} {value}")
