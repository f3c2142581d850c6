"""What a virtual repository shows of a node: some of its hierarchies, libraries and sources, or sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from indlet.errors import SettingsError
from indlet.oai.identifier import set_spec
from indlet.oai.names import OAI_PATH
from indlet.oai.provenance import FROM
from indlet.settings import Settings, VirtualRepository
from indlet.store import Origin

_PATH = re.compile(rf"{OAI_PATH}(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
EVERYTHING: Final = "*"


@dataclass(frozen=True, slots=True)
class Scope:
    """`chosen`: names of origins, "name:set", or "*" for all. `path` tells virtual repositories apart."""

    path: str
    chosen: tuple[str, ...]

    @classmethod
    def of(cls, virtual: VirtualRepository) -> Scope:
        """What a virtual repository shows: nothing, once it is closed."""
        return cls(virtual.path, () if virtual.closed else virtual.from_)

    @property
    def by_sets(self) -> bool:
        """Whether single records have to be looked at: of some origin only a set is shown."""
        return EVERYTHING not in self.chosen and any(":" in name for name in self.chosen)

    def shows(self, origin: Origin) -> bool:
        """Whether some records of an origin may be shown."""
        return any(name in (EVERYTHING, origin.name) or _named(name) == origin.name for name in self.chosen)

    def takes(self, specs: Sequence[str]) -> bool:
        """Whether a record with these sets is shown."""
        for name in self.chosen:
            if name == EVERYTHING or _of(specs, name) or _has(specs, name):
                return True
            source, _, spec = name.partition(":")
            if spec and _of(specs, source) and _has(specs, spec):
                return True
        return False

    def names(self, spec: str) -> bool:
        """Whether a set may be listed."""
        return not self.by_sets or any(
            _has([spec], name) or _has([spec], name.partition(":")[2] or name) or _of([spec], _named(name))
            or _has([name], spec)
            for name in self.chosen
        )  # fmt: skip


def virtual_settings(settings: Settings, virtual: VirtualRepository) -> Settings:
    """The settings of a node as a virtual repository states them."""
    if not _PATH.fullmatch(virtual.path):
        raise SettingsError(f"[[repository]]: path {virtual.path!r}; write one such as '{OAI_PATH}/nasa'")
    node = settings.node
    stated = replace(
        node,
        name=virtual.name or node.name,
        description=virtual.description,
        rights=virtual.rights or node.rights,
        admin_email=virtual.admin_email or node.admin_email,
    )
    return replace(settings, node=stated)


def _named(name: str) -> str:
    return name.partition(":")[0]


def _of(specs: Sequence[str], name: str) -> bool:
    """Whether sets say that a record is of an origin: a hierarchy's sets begin with its name."""
    return set_spec((FROM, name)) in specs or _has(specs, set_spec((name,)))


def _has(specs: Sequence[str], spec: str) -> bool:
    return any(one == spec or one.startswith(f"{spec}:") for one in specs)
