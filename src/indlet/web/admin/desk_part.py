"""What a part of the desk consists of: acts, pages, and more for the pages that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from indlet.model import JsonObject

Form = dict[str, str]


class Act(NamedTuple):
    """A name, who may do it, and what does it: the page to go to, what was done, and to how many."""

    name: str
    role: str
    work: Callable[[Form], tuple[str, str] | tuple[str, str, int]]


class DeskPage(NamedTuple):
    """A page of the desk: its name in tabs and addresses, its template, and what that shows of a query."""

    name: str
    template: str
    context: Callable[[Mapping[str, str]], JsonObject]
    json: Callable[[], Response] | None = None
    feed: Callable[[Request], Response] | None = None  # for those who have its address, signed in or not


class DeskPart(NamedTuple):
    pages: Sequence[DeskPage] = ()
    acts: Sequence[Act] = ()
    # What the page about the node's own records shows besides.
    about_own_records: Callable[[], JsonObject] = dict
