"""What is lost: pruning and milder or harsher analysis, their size beside their effectiveness.

Every policy analyses the same texts; the records are served, indexed, and asked the collection's topics under
each model. Size is told twice: bytes of the index, and bytes on the wire (tf_compact in zstd, metadata
included, and what of that the index part makes up).
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from typing import Any, Final

import httpx
from bench.evidence.figures import COLOURS, MARKERS, Figures, picture, table
from bench.evidence.material import Judged, judged
from bench.evidence.setting import Found, Setting
from bench.evidence.statistics import holm, randomisation
from bench.evidence.topics import MEASURES, RANKED, Ranking, by_topic, mean
from bench.serve import decoded, next_token

from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.provider.serve import application
from indlet.service.search.library import Library
from indlet.settings import Analysis, Node, Settings
from indlet.store import Store
from indlet.text import Analyzer, Policy

TITLE = "What is lost"
SHARES: Final = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
POLICIES: Final = {
    "words": Analysis(stop=False, stem=False),
    "stopped": Analysis(stem=False),
    "stemmed": Analysis(stop=False),
    "stopped and stemmed": Analysis(),
    **{f"pruned to {share:.0%}": Analysis(prune=share) for share in SHARES},
}
# The plainest summary of a text is its beginning (Lu & Callan 2002 compare several): label -> share of words.
LEADS: Final = {f"first {share:.0%} of each text": share for share in (0.75, 0.5, 0.25)}
WHOLE: Final = "stopped and stemmed"


def run(setting: Setting) -> Found:
    names = setting.pick(("cranfield",), ("cranfield", "cacm"), ("cranfield", "cacm"))
    found: Found = {"collections": {}}
    for name in names:
        material = judged(name, setting.collection(name), setting.seed)
        rows: dict[str, Any] = {}
        for label in (*POLICIES, *LEADS):
            summary = summarised(material, LEADS.get(label, 1.0))
            rows[label] = measure(setting, summary, POLICIES.get(label, POLICIES[WHOLE]))
            told = rows[label]["measures"]["bm25"]
            setting.say(
                f"{material.name}, {label}: {rows[label]['wire']:,} bytes, MAP {mean(told['MAP']):.4f}"
            )
        found["collections"][material.name] = {
            "documents": len(material.texts),
            "content_bytes": sum(len(text.encode()) for text in material.texts.values()),
            "policies": rows,
        }
    return found


def summarised(material: Judged, share: float) -> Judged:
    """The collection with the first words of each text alone."""
    if share == 1:
        return material
    texts = {}
    for name, text in material.texts.items():
        spoken = text.split()
        texts[name] = " ".join(spoken[: max(round(share * len(spoken)), 1)])
    return replace(material, texts=texts)


def measure(setting: Setting, material: Judged, analysis: Analysis) -> Found:
    settings = Settings(analysis=analysis, node=Node(base_url="http://127.0.0.1"))
    choices = {"stop": analysis.stop, "stem": analysis.stem, "prune": analysis.prune or None}
    analyzer = Analyzer(replace(Policy(), **choices))  # type: ignore[arg-type]
    folder = setting.work / "loss"
    shutil.rmtree(folder, ignore_errors=True)
    records = []
    for name, text in material.texts.items():
        metadata = {"title": [" ".join(text.split()[:10])], "identifier": [name]}
        vector = analyzer.vector(text)
        records.append(Record(f"oai:x.org:{name}", metadata, vector, raw=oai_dc.write(metadata)))
    with Store.open(folder) as store:
        with store.write() as tx:
            tx.put(tx.origin("hierarchy", "texts"), records)
        wire = asyncio.run(fetched(store, settings, "&indexPrefix=tf_compact"))
        bare = asyncio.run(fetched(store, settings, ""))
    with Library.open(folder, settings) as library:
        statistics = library.searcher().stats()

        def rank(model: str, text: str, depth: int) -> Ranking:
            return library.rank(text, depth, model=model)

        scores = by_topic(RANKED, material, rank)
    return {
        "wire": wire,
        "wire_index": wire - bare,
        "index_bytes": statistics.bytes,
        "postings": statistics.postings,
        "terms": statistics.terms,
        # Topic by topic only for the measure that is tested.
        "measures": {
            model: {
                key: {t: round(v, 5) for t, v in values.items()} if key == "MAP" else {"all": mean(values)}
                for key, values in scores[model].items()
            }
            for model in RANKED
        },
    }


async def fetched(store: Store, settings: Settings, more: str) -> int:
    """Bytes of the bodies of a whole list in zstd."""
    size = 0
    transport = httpx.ASGITransport(app=application(store, settings))
    headers = {"Accept-Encoding": "zstd, identity;q=0.1"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        following = f"/ft-oai?verb=ListRecords&metadataPrefix=oai_dc{more}"
        while following:
            async with client.stream("GET", following) as response:
                raw = b"".join([chunk async for chunk in response.aiter_raw()])
                assert response.headers.get("content-encoding") == "zstd", response.headers
            size += len(raw)
            token = next_token(decoded(raw, "zstd"))
            following = f"/ft-oai?verb=ListRecords&resumptionToken={token}" if token else ""
    return size


def recommendation(collections: dict[str, Any]) -> tuple[float, str]:
    """The smallest share under which no model on any collection loses MAP significantly, and why."""
    best, worst = 1.0, ""
    for share in SHARES:
        label, values, names = f"pruned to {share:.0%}", [], []
        for name, one in collections.items():
            for model in RANKED:
                whole = one["policies"][WHOLE]["measures"][model]["MAP"]
                pruned = one["policies"][label]["measures"][model]["MAP"]
                topics = sorted(whole)
                p = randomisation([pruned[t] for t in topics], [whole[t] for t in topics])
                values.append(p if mean(pruned) < mean(whole) else 1.0)
                names.append(f"{model} on {name}: {mean(whole):.3f} → {mean(pruned):.3f}")
        adjusted = holm(values)
        if min(adjusted) < 0.05:
            worst = names[adjusted.index(min(adjusted))]
            break
        best = share
    return best, worst


def show(found: Found, figures: Figures) -> str:
    collections: dict[str, Any] = found["collections"]
    with figures.plot("loss", len(collections), (8.4, 3.6), squeeze=False) as grid:
        for axis, (name, one) in zip(grid[0], collections.items(), strict=True):
            rows = one["policies"]
            labels = [WHOLE, *(f"pruned to {share:.0%}" for share in SHARES)]
            base = rows[WHOLE]["wire_index"]
            for number, model in enumerate(RANKED):
                axis.plot(
                    [100 * rows[label]["wire_index"] / base for label in labels],
                    [mean(rows[label]["measures"][model]["MAP"]) for label in labels],
                    f"{MARKERS[number]}-", color=COLOURS[number], label=model,
                )  # fmt: skip
            axis.set(xlabel="index part on the wire, % of unpruned", title=f"MAP, {name}", ylim=(0, None))
            axis.set_xlim(105, 0)
        grid[0][0].legend(loc="lower left")
    share, worst = recommendation(collections)
    parts = [
        "Policies over the same texts: words as they are, stop words removed, stems, both (the default), and "
        "the default with pruning that keeps a share of each document's terms (`prune`, see "
        "[policy](../policy.md)), and the default over the beginning of each text, its plainest summary. "
        "Case is folded by every policy. `boolean` does not rank, and is left out.\n",
        picture("loss", "Mean average precision over index size for each model, as pruning gets harsher")
        + "\n",
    ]
    for name, one in collections.items():
        base = one["policies"][WHOLE]
        parts.append(
            f"**{name}** ({one['documents']:,} documents, {one['content_bytes'] / 1e6:.2f} MB of text): "
            "MAP / nDCG@10 / P@10\n"
        )
        parts.append(
            table(
                ["policy", "wire kB", "index part", "index kB", *RANKED],
                [
                    [
                        label,
                        f"{row['wire'] / 1e3:,.0f}",
                        f"{row['wire_index'] / base['wire_index']:.0%}",
                        f"{row['index_bytes'] / 1e3:,.0f}",
                        *(
                            " / ".join(f"{mean(row['measures'][model][key]):.3f}" for key in MEASURES[:3])
                            for model in RANKED
                        ),
                    ]
                    for label, row in one["policies"].items()
                ],
            )
        )
    if share < 1:
        told = f"Keep {share:.0%} of the terms or more: down to there no model loses MAP significantly"
        told += f", the next step does ({worst})" if worst else ""
    else:
        told = f"Do not prune unless you must: even {SHARES[0]:.0%} costs MAP significantly ({worst})"
    bargains = "; ".join(
        f"{label}: {100 * size:.0f} % of the bytes, {100 * left:.0f} % of the MAP"
        for label, (size, left) in (
            (label, bargain(collections, label))
            for label in ("pruned to 70%", "pruned to 50%", "pruned to 30%", *LEADS)
            if all(label in one["policies"] for one in collections.values())
        )
    )
    parts.append(
        f"**Recommendation.** {told} (randomisation test over topics, Holm over all models and collections, "
        f"5 %). Where bytes, or what may be published, force it, this is the price, as a mean over models "
        f"and collections: {bargains}. {together(collections)}"
    )
    return "\n".join(parts)


def together(collections: dict[str, Any]) -> str:
    """What stop words and stems do, beside words as they are."""
    policies = [one["policies"] for one in collections.values()]
    smaller = all(rows[WHOLE]["wire"] < rows["words"]["wire"] for rows in policies)
    better = all(
        mean(rows[WHOLE]["measures"][model]["MAP"]) > mean(rows["words"]["measures"][model]["MAP"])
        for rows in policies
        for model in RANKED
    )
    if smaller and better:
        return (
            "Stop words and stems belong together: beside words as they are, they shrink what is sent and "
            "raise MAP for every model on every collection."
        )
    return (
        f"Stop words and stems, beside words as they are: fewer bytes on every collection: {smaller}; higher "
        f"MAP for every model on every collection: {better}."
    )


def bargain(collections: dict[str, Any], label: str) -> tuple[float, float]:
    """What is left of the index part's bytes and of MAP under a policy."""
    sizes, left = [], []
    for one in collections.values():
        whole, pruned = one["policies"][WHOLE], one["policies"][label]
        sizes.append(pruned["wire_index"] / whole["wire_index"])
        left += [
            mean(pruned["measures"][model]["MAP"]) / mean(whole["measures"][model]["MAP"]) for model in RANKED
        ]
    return sum(sizes) / len(sizes), sum(left) / len(left)
