"""A request's arguments: which are legal, which are missing, what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from indlet.errors import BadArgument, BadVerb, ProtocolError
from indlet.oai.dates import period


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    exclusive: str = ""  # an argument that stands alone


_LIST = ArgumentRule(("metadataPrefix",), ("from", "until", "set"), "resumptionToken")
VERBS: Final = {
    "Identify": ArgumentRule(),
    "ListMetadataFormats": ArgumentRule((), ("identifier",)),
    "ListSets": ArgumentRule((), (), "resumptionToken"),
    "GetRecord": ArgumentRule(("identifier", "metadataPrefix")),
    "ListIdentifiers": _LIST,
    "ListRecords": _LIST,
}
_EXTENDED_LIST = ArgumentRule(_LIST.required, (*_LIST.optional, "indexPrefix"), _LIST.exclusive)
EXTENDED_VERBS: Final = VERBS | {
    "ListIndexFormats": ArgumentRule((), ("identifier",)),
    "GetRecord": ArgumentRule(("identifier", "metadataPrefix"), ("indexPrefix",)),
    "ListIdentifiers": _EXTENDED_LIST,
    "ListRecords": _EXTENDED_LIST,
}

_PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")
_SET = re.compile(r"[A-Za-z0-9\-_.!~*'()]+(:[A-Za-z0-9\-_.!~*'()]+)*")
# A URI reference, tolerant of characters beyond ASCII. Anything else could not even be echoed in <request>.
_BEYOND = r"\u00a1-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd"
_CHARACTER = rf"(?:[A-Za-z0-9\-_.!~*'();/?@&=+$,:{_BEYOND}]|%[0-9A-Fa-f]{{2}})"
_URI = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.\-]*:|(?![^/?#]*:))"  # without a scheme, no colon in the first part
    r"(?:(?!//)|(?=//[A-Za-z0-9\-_.~]+(?::[0-9]{1,5})?(?:[/?#]|$)))"  # after //, a host
    rf"{_CHARACTER}+(?:\#{_CHARACTER}*)?"
)
_LONGEST: Final = 16384  # a path of 4096 bytes, each as %XX, and some more


@dataclass(frozen=True, slots=True)
class Request:
    """A well-formed request. `arguments` are those given, the verb first: what `<request>` repeats."""

    verb: str
    arguments: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str | None:
        return self.arguments.get(name)


def parse(pairs: Iterable[tuple[str, str]], extended: bool) -> Request | list[ProtocolError]:
    """The request that the pairs make, or everything that is wrong with them."""
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    verbs = EXTENDED_VERBS if extended else VERBS
    named = given.pop("verb", [])
    if not named:
        return [BadVerb(f"the argument verb is missing; one of {', '.join(verbs)}")]
    if len(named) > 1:
        return [BadVerb("the argument verb is repeated; give it once")]
    verb = named[0]
    if verb not in verbs:
        return [BadVerb(f"{_shown(verb)} is not a verb; one of {', '.join(verbs)}")]
    errors = list(_faults(verb, verbs[verb], given))
    if errors:
        return errors
    return Request(verb, {"verb": verb, **{name: values[0] for name, values in given.items()}})


def _faults(verb: str, rule: ArgumentRule, given: dict[str, list[str]]) -> Iterable[ProtocolError]:
    legal = {*rule.required, *rule.optional} | ({rule.exclusive} if rule.exclusive else set())
    for name, values in given.items():
        if name not in legal:
            known = ", ".join(sorted(legal)) or "no other arguments"
            yield BadArgument(f"{_shown(name)} is not an argument of {verb}; it takes {known}")
        elif len(values) > 1:
            yield BadArgument(f"the argument {name} is repeated; give it once")
    if rule.exclusive in given:
        if len(given) > 1:
            yield BadArgument(f"{rule.exclusive} is exclusive: give it alone with the verb")
        return
    for name in rule.required:
        if name not in given:
            yield BadArgument(f"{verb} needs the argument {name}")
    for name, values in given.items():
        if name in legal:
            yield from _syntax(name, values[0])
    yield from _window(given)


def _syntax(name: str, value: str) -> Iterable[ProtocolError]:
    if len(value) > _LONGEST:
        yield BadArgument(f"{name} is longer than {_LONGEST} characters")
    elif name in ("metadataPrefix", "indexPrefix") and not _PREFIX.fullmatch(value):
        yield BadArgument(f"{name} {_shown(value)} is not a prefix: letters, digits and -_.!~*'() only")
    elif name == "set" and not _SET.fullmatch(value):
        yield BadArgument(
            f"set {_shown(value)} is not a setSpec: letters, digits and -_.!~*'() between colons"
        )
    elif name == "identifier" and not _URI.fullmatch(value):
        yield BadArgument(f"identifier {_shown(value)} is not a URI")
    elif name in ("from", "until") and period(value) is None:
        yield BadArgument(f"{name} {_shown(value)} is not a UTC date: YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ")


def _window(given: dict[str, list[str]]) -> Iterable[ProtocolError]:
    if "from" not in given or "until" not in given:
        return
    since, until = period(given["from"][0]), period(given["until"][0])
    if since is None or until is None:
        return
    if since.day != until.day:
        yield BadArgument("from and until have different granularities; use one for both")
    elif since.first > until.last:
        yield BadArgument("from lies after until; exchange them")


def _shown(value: str) -> str:
    return repr(value if len(value) <= 100 else value[:100] + "…")
