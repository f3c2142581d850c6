"""From a template to a response: the language, the appearance, and the headers that keep a page safe."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Final
from urllib.parse import quote

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from starlette.requests import Request
from starlette.responses import Response

from indlet.formats.feed_writer import FEEDS
from indlet.provider.serve.coding import negotiated
from indlet.provider.serve.responses import OwnPage
from indlet.settings import Settings
from indlet.web.appearance import Brand, brand
from indlet.web.i18n import LANGUAGES, Strings, chosen, strings, value_key
from indlet.web.math_ml import with_math
from indlet.web.math_text import readable

# No script and no style but our own files, no frame, no form that posts elsewhere.
POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
LANGUAGE_NAMES: Final = {"en": "English", "de": "Deutsch"}
THEMES: Final = ("light", "dark")


@cache
def static_version() -> str:
    """A digest of the static files: part of their addresses, so that browsers may keep them."""
    digest = hashlib.sha256()
    for entry in sorted(files("indlet.web").joinpath("static").iterdir(), key=lambda e: e.name):
        digest.update(entry.read_bytes())
    return digest.hexdigest()[:10]


def packed(request: Request, body: bytes) -> tuple[bytes, dict[str, str]]:
    """The body as the client may have it, with the header that says so."""
    if len(body) < 1000 or negotiated(request.headers.get("accept-encoding"), ("gzip",)) != "gzip":
        return body, {}
    return gzip.compress(body, 3, mtime=0), {"Content-Encoding": "gzip"}


def _mounted(mount: str, place: str) -> str:
    """A link as the browser needs it: places within the node get the path that it is mounted below."""
    return f"{mount}{place}" if place.startswith("/") else place


class _DirectCalls(CodeGenerator):
    """Templates call words and addresses as Python does: a result page has some 400 such calls, and Jinja
    asks at each whether the function wants the template's context, which takes longer than the call.
    """

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        root: nodes.Node = node.node
        while isinstance(root, nodes.Getattr):
            root = root.node
        plain = isinstance(root, nodes.Name) and root.name in ("t", "state", "preference")
        if not plain or node.dyn_args or node.dyn_kwargs:
            super().visit_Call(node, frame, forward_caller=forward_caller)
            return
        self.visit(node.node, frame)
        self.write("(")
        for argument in (*node.args, *node.kwargs):
            self.visit(argument, frame)
            self.write(", ")
        self.write(")")


@dataclass(frozen=True)
class Pages:
    """Renders templates for one node."""

    settings: Settings
    environment: jinja2.Environment
    brand: Brand

    @classmethod
    def of(cls, settings: Settings) -> Pages:
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("indlet.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.code_generator_class = _DirectCalls
        environment.globals["feeds"] = FEEDS
        environment.globals["root"] = settings.mount()
        environment.filters["url"] = partial(_mounted, settings.mount())
        environment.filters["readable"] = readable
        environment.filters["math"] = with_math
        return cls(settings, environment, brand(settings))

    @property
    def name(self) -> str:
        return self.brand.name

    @property
    def models(self) -> bool:
        """Whether people may choose retrieval models, compare them, and see how scores come about."""
        return self.settings.portal.models

    def strings(self, request: Request) -> Strings:
        """The words of a page, in the reader's language, with the operator's names of types and languages."""
        found = strings(self.language(request))
        own = self.settings.portal
        named = {f"type.{value_key(value)}": name for value, name in own.types.items()}
        named |= {f"language.{value.lower()}": name for value, name in own.languages.items()}
        return replace(found, table={**found.table, **named}) if named else found

    def language(self, request: Request) -> str:
        return chosen(
            request.query_params.get("lang"),
            request.cookies.get("lang"),
            request.headers.get("accept-language", ""),
        )

    def render(
        self,
        request: Request,
        template: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        here: str = "",
        policy: str = POLICY,
        **context: object,
    ) -> Response:
        t = self.strings(request)
        theme = request.cookies.get("theme", "")
        menu = [("advanced", "/advanced"), ("browse", "/browse")]
        menu += [("information", "/information")] if self.brand.about else []
        menu.append(("help", "/help"))

        def preference(name: str, value: str) -> str:
            place = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return f"/preferences?{name}={value}&back={quote(place, safe='')}"

        body = self.environment.get_template(template).render(
            t=t,
            here=here,
            name=self.name,
            theme=theme if theme in THEMES else "",
            menu=menu,
            languages=LANGUAGES,
            language_names=LANGUAGE_NAMES,
            preference=preference,
            provides=self.settings.provides(),
            desk=self.settings.has_desk(),
            version=static_version(),
            brand=self.brand,
            offers_models=self.models,
            alerts=self.settings.portal.alerts,
            **context,
        )
        # The desk's pages hold a secret beside what an address puts in: they are not compressed (BREACH).
        content, coding = (body.encode(), {}) if here == "desk" else packed(request, body.encode())
        return OwnPage(
            content,
            policy,
            status,
            {
                "Content-Language": t.code,
                "Cache-Control": "no-cache, private",
                "Vary": "Cookie, Accept-Language, Accept-Encoding",
                **coding,
                **(headers or {}),
            },
        )

    def message(
        self,
        request: Request,
        status: int,
        title: str,
        *lines: str,
        tone: str = "",
        command: str = "",
        action: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        search: bool = False,
    ) -> Response:
        """A page that says one thing and what to do about it; with `search` it offers the query box."""
        return self.render(
            request, "message.html", status, headers, title=title, lines=[line for line in lines if line],
            tone=tone, command=command, action=action, search=search,
        )  # fmt: skip
