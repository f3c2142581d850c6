"""search, stats, reindex, evaluate. The engine is imported only when it is used: that takes 0.1 s."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indlet.cli.options import config_option, data_option, settings_given
from indlet.cli.show import amount, printable, say, say_json
from indlet.errors import SettingsError

if TYPE_CHECKING:
    from indlet.service.search.evaluate import Topic
    from indlet.service.search.library import Library
    from indlet.service.search.results import Explained, Hit, Result

WIDTH = 78
RUN_DEPTH = 1000

model_option = click.option(
    "--model", metavar="M", default="", help="bm25, vsm, lm-dirichlet, lm-jm, bm25-plus, pl2 or boolean."
)
param_option = click.option(
    "--param", "parameters", multiple=True, metavar="K=V", help="A parameter of the model, such as k1=0.9."
)
language_option = click.option(
    "--language", "languages", metavar="L", default="", help="Analyse the query by these languages: en,de."
)


@click.command(epilog="See docs/query.md for the query language.")
@data_option
@config_option
@model_option
@param_option
@language_option
@click.option("--limit", type=click.IntRange(0, 1_000_000), metavar="N", help="How many hits.  [default: 10]")
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Leave out the first N hits.")
@click.option(
    "--sort",
    type=click.Choice(["score", "newest", "oldest", "title", "author"]),
    default="score",
    show_default=True,
)
@click.option("--facets", is_flag=True, help="Count the values of sources, sets, types, years, people …")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@click.option("--accents", type=click.Choice(["fold", "exact"]), help="Whether accents count.")
@click.option(
    "--all-words", type=click.Choice(["first", "off"]), help="Records with all words first, or not."
)
@click.option("--plain", is_flag=True, help="Take QUERY as words, whatever signs are in it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: total, hits, notes, suggestions …")
@click.option("--trec", metavar="RUNID", default="", help="Lines of a TREC run.")
@click.option("--qid", default="1", show_default=True, help="The query's id in a TREC run.")
@click.option("--queries", type=click.Path(path_type=Path), metavar="FILE", help="Run all topics of a file.")
@click.option("--no-sync", is_flag=True, help="Search the index as it stands, without catching up first.")
@click.argument("query", nargs=-1)
def search(
    data: Path | None, config: Path | None, model: str, parameters: tuple[str, ...], languages: str,
    limit: int | None, offset: int, sort: str, facets: bool, explain: bool, plain: bool, as_json: bool,
    trec: str, qid: str, queries: Path | None, no_sync: bool, query: tuple[str, ...],
    accents: str | None, all_words: str | None,
) -> None:  # fmt: skip
    """Search the harvested index.

    \b
    indlet search boundary layer
    indlet search --model lm-dirichlet --param mu=500 'title:"shock wave" date:1955..1960'
    indlet search --json --limit 100 'wing AND (flutter OR vibration) NOT source:nasa'
    indlet search --queries topics.jsonl --trec my-run > my.run
    """
    if as_json and trec:
        raise click.UsageError("--json and --trec exclude each other")
    if bool(query) == (queries is not None):
        raise click.UsageError("give a QUERY, or a file of them with --queries")
    if queries is not None or trec:
        _check_run(trec, qid, offset=offset, sort=sort, facets=facets, explain=explain)
    spoken = _languages(languages)
    with _library(data, config, follow=not no_sync) as library:
        if queries is not None or trec:
            from indlet.service.search.evaluate import Topic, read_topics

            topics = read_topics(queries) if queries is not None else [Topic(qid, " ".join(query))]
            options = {"model": model, "parameters": parameters, "languages": spoken}
            with _wrong_options():
                _run(library, topics, trec, limit, plain=plain or queries is not None, **options)
            return
        from indlet.service.search.library import FACETS

        text = " ".join(query)
        with _wrong_options():
            result = library.search(
                text, model=model, parameters=parameters, limit=limit, offset=offset, sort=sort,
                facets=FACETS if facets else (), languages=spoken, plain=plain, accents=accents or "",
                all_words=all_words or "",
            )  # fmt: skip
        told = {}
        if explain:
            told = {
                hit.rank: library.explain(
                    text, hit.identifier, source=hit.source, model=model, parameters=parameters,
                    languages=spoken, plain=plain, accents=accents or "", all_words=all_words or "",
                )
                for hit in result
            }  # fmt: skip
        if as_json:
            answer = result.to_json()
            for hit in answer["hits"] if explain else ():
                hit["explanation"] = told[hit["rank"]].to_json()
            _print_json(answer)
            return
        _print_result(result, told)


@click.command()
@data_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def stats(data: Path | None, config: Path | None, as_json: bool) -> None:
    """Show the statistics of store and index.

    The fingerprint is a digest of all statistics: two indexes of the same records have the same one.
    """
    with _library(data, config) as library:
        counted = library.stats()
    if as_json:
        _print_json(counted)
        return
    for part, values in counted.items():
        say(part)
        for name, value in values.items():
            if name == "sources":
                for source in value:
                    gone = f", {source['deleted']:,} deleted" if source["deleted"] else ""
                    say(f"  {source['kind']:<17} {printable(source['name'])}: {source['records']:,}{gone}")
            else:
                shown = (
                    f"{value:,.2f}"
                    if isinstance(value, float)
                    else f"{value:,}"
                    if isinstance(value, int)
                    else value
                )
                say(f"  {name.replace('_', ' '):<17} {shown}")


@click.command()
@data_option
@config_option
def reindex(data: Path | None, config: Path | None) -> None:
    """Make the index anew from the store; searches meanwhile are answered from the old one.

    Needed only by the curious: an index that is damaged or out of step is rebuilt without being asked.
    """
    settings = settings_given(data, config)
    from indlet.service.search.library import Library

    begun = time.perf_counter()
    with Library.open(settings.data, settings, create=False) as library:
        progress = library.reindex()
    seconds = time.perf_counter() - begun
    for name, told in progress.learned.items():
        say(
            f"{name}: {amount(told.values, 'value')} learned from {amount(told.records, 'record')}; "
            f"of records held back, precision {told.precision:.0%}, recall {told.recall:.0%}"
        )
    indexed, rate = amount(progress.applied, "record"), progress.applied / seconds
    say(f"{indexed} indexed in {seconds:.1f} s ({rate:,.0f}/s)")


@click.command()
@data_option
@config_option
@click.option("--queries", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Topics.")
@click.option("--qrels", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Judgements.")
@click.option("--models", help="Which to measure, as bm25,vsm; default: all that rank.")
@click.option("--param", "parameters", multiple=True, metavar="K=V", help="For the models that have it.")
@language_option
@click.option("--depth", type=click.IntRange(1, 1_000_000), default=RUN_DEPTH, show_default=True)
@click.option(
    "--id-pattern", default="", metavar="REGEX", help="Finds a judged document's name in an identifier."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def evaluate(
    data: Path | None, config: Path | None, queries: Path, qrels: Path, models: str | None,
    parameters: tuple[str, ...], languages: str, depth: int, id_pattern: str, as_json: bool,
) -> None:  # fmt: skip
    """Measure retrieval models against relevance judgements.

    \b
    indlet evaluate --queries topics.jsonl --qrels qrels.txt
    indlet evaluate --queries topics.tsv --qrels qrels.txt --models bm25 --param k1=0.9 --param b=0.4
    """
    from indlet.service.search.evaluate import MEASURES, Named, read_judgements, read_topics
    from indlet.service.search.evaluate import evaluate as measure
    from indlet.service.search.rank import MODELS

    if models is None:
        names = [name for name, kind in MODELS.items() if kind.finishing != "constant"]
    else:
        names = list(dict.fromkeys(name.strip() for name in models.split(",") if name.strip()))
    if not names:
        raise click.UsageError("--models names no model; leave it out to measure those that rank")
    topics, judgements = read_topics(queries), read_judgements(qrels)
    spoken = _languages(languages)
    with _library(data, config) as library:
        own = {name: _parameters_for(name, names, parameters) for name in names}

        def rank(model: str, text: str, depth: int) -> list[Named]:
            with _wrong_options():
                return library.rank(text, depth, model=model, parameters=own[model], languages=spoken)

        table = measure(names, topics, judgements, rank, pattern=id_pattern, depth=depth)
    if as_json:
        _print_json(
            {
                "topics": table[0].topics,
                "depth": depth,
                "models": [{"model": row.model, "judged_found": row.found, **row.measures} for row in table],
            }
        )
        return
    say(f"{amount(table[0].topics, 'topic')}, {amount(depth, 'record')} deep")
    say(f"{'model':<14}" + "".join(f"{name:>9}" for name in MEASURES))
    for row in table:
        say(f"{row.model:<14}" + "".join(f"{row.measures[name]:>9.4f}" for name in MEASURES))
    if not any(row.found for row in table):
        raise SettingsError(
            "no judged document was found among the records: the judgements know them by other names; "
            "say with --id-pattern where an identifier holds those"
        )


# What the commands share


def _library(data: Path | None, config: Path | None, *, follow: bool = True) -> Library:
    settings = settings_given(data, config)
    if not settings.data.exists():
        raise SettingsError(
            f"{settings.data}: no such folder; name the one given as --data to indlet harvest"
        )
    from indlet.service.search.library import Library

    return Library.open(settings.data, settings, create=False, follow=follow)


def _languages(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@contextmanager
def _wrong_options() -> Iterator[None]:
    """A model, parameter, language or offset that there is not: the command line is wrong."""
    try:
        yield
    except SettingsError as e:
        raise click.UsageError(str(e)) from e


def _check_run(run: str, qid: str, **unfit: object) -> None:
    """A run has columns with white space between, and is in the order of its scores from the first on."""
    for option, value in (("--trec", run), ("--qid", qid)):
        if len(value.split()) > 1 or (option == "--qid" and not value.strip()):
            raise click.UsageError(f"{option} is {value!r}: a column of a run; give a name without spaces")
    for option, given in unfit.items():
        if given not in (0, False, "score"):
            raise click.UsageError(
                f"--{option} does not go with a run: leave it, or --trec and --queries, out"
            )


def _parameters_for(name: str, names: list[str], parameters: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the parameters that this model has; one that none of the models has is an error."""
    from indlet.service.search.rank import MODELS, parameters_of

    if name not in MODELS:
        raise click.UsageError(f"there is no model {name!r}: choose from {', '.join(MODELS)}")
    known = {n: {own.rstrip("_") for own in parameters_of(MODELS[n])} for n in names if n in MODELS}
    for parameter in parameters:
        key = parameter.partition("=")[0].strip()
        if not any(key in has for has in known.values()):
            takes = ", ".join(dict.fromkeys(name for has in known.values() for name in sorted(has))) or "none"
            raise click.UsageError(
                f"no model of {', '.join(names)} has a parameter {key!r}: they take {takes}"
            )
    return tuple(p for p in parameters if p.partition("=")[0].strip() in known[name])


def _run(
    library: Library, topics: list[Topic], run: str, limit: int | None, *, plain: bool, **options: Any
) -> None:
    """Each topic's records: as a TREC run, or without a name for it as JSON lines."""
    depth = RUN_DEPTH if limit is None else limit
    for topic in topics:
        ranked = library.rank(topic.text, depth, plain=plain, **options)
        if run:
            for place, record in enumerate(ranked, 1):
                name = "%20".join(record.identifier.split())
                say(f"{'%20'.join(topic.id.split())} Q0 {name} {place} {record.score!r} {run}")
        else:
            hits = [{"identifier": record.identifier, "score": record.score} for record in ranked]
            say_json({"qid": topic.id, "hits": hits})


def _print_json(answer: object) -> None:
    say_json(answer, indent=True)


def _print_result(result: Result, told: dict[int, Explained]) -> None:
    bold = (lambda text: click.style(text, bold=True)) if sys.stdout.isatty() else str
    dim = (lambda text: click.style(text, dim=True)) if sys.stdout.isatty() else str
    for note in result.notes:
        say(f"note: {printable(note)}", err=True)
    for suggestion in result.suggestions:
        say(f"no record contains “{printable(suggestion.word)}”", err=True)
    if result.corrected:
        say(f"did you mean  {printable(result.corrected)}", err=True)
    records = amount(result.total, "record")
    shown = f", {result.offset + 1}–{result.offset + len(result)}" if result.hits else ""
    say(dim(f"{records}{shown} · {result.model}"))
    for hit in result:
        say()
        _print_hit(hit, bold, dim)
        if hit.rank in told:
            _print_explanation(told[hit.rank], dim)
    for name, facet in result.facets.items():
        if facet.values:
            named = {value: f"{value} ({label})" for value, label in facet.labels.items()}
            values = ", ".join(
                f"{printable(named.get(value, value))} {n:,}" for value, n in facet.values[:10]
            )
            say(f"\n{bold(name)}  {values}")


def _print_hit(hit: Hit, bold: Callable[[str], str], dim: Callable[[str], str]) -> None:
    import textwrap

    title = textwrap.wrap(printable(hit.title), WIDTH - 5) or [""]
    say(f"{hit.rank:>3}  " + bold("\n     ".join(title)))
    creators = "; ".join(map(printable, hit.creators[:3])) + (" …" if len(hit.creators) > 3 else "")
    facts = [creators, hit.year, ", ".join(map(printable, hit.sources)), f"{hit.score:.4f}"]
    say("     " + " · ".join(fact for fact in facts if fact))
    say("     " + dim(printable(hit.url or hit.identifier)))
    # Of a phrase the term itself is shown: which of its words it was.
    named = (
        (part, part.term if not part.words or " " in part.words[0] else part.words[0])
        for part in hit.terms[:6]
    )
    terms = [f"{part.field}{':' * bool(part.field)}{word} {part.share:.0%}" for part, word in named]
    if terms:
        say("     " + dim(printable(", ".join(terms))))


def _print_explanation(told: Explained, dim: Callable[[str], str]) -> None:
    for share in told.shares:
        name = f"{share.field}:{share.term}" if share.field else share.term
        say(
            dim(
                f"     {share.contribution:>12.6f}  {printable(name)}  "
                f"(tf {share.frequency}, df {share.df:,} of {told.records:,})"
            )
        )
    if told.remainder:
        say(dim(f"     {told.remainder:>12.6f}  {told.formula}"))
    say(dim(f"     {told.score:>12.6f}  score"))
