"""The words of a web page or of a piece of markup, as a reader sees them."""

from __future__ import annotations

from typing import Final

from selectolax.lexbor import LexborHTMLParser

_SILENT: Final = ["script", "style", "template", "iframe", "object", "svg", "head"]
# Mark-up inside a word or a line: unwrapped, so that <b>W</b>ord stays one word. All else separates words.
_INLINE: Final = (
    "a,abbr,acronym,b,bdi,bdo,big,cite,code,data,del,dfn,em,font,i,ins,kbd,label,mark,q,s,samp,small,"
    "span,strike,strong,sub,sup,time,tt,u,var,wbr,nobr"
)


def html_text(markup: str) -> str:
    return page_text(LexborHTMLParser(markup))


def page_text(page: LexborHTMLParser) -> str:
    """The page's words. Changes the tree."""
    body = page.body or page.root
    if body is None:
        return ""
    page.strip_tags(_SILENT)
    for node in page.css(_INLINE):  # one selection: unwrap_tags makes one for each of them
        node.unwrap()
    page.merge_text_nodes()
    return str(body.text(separator="\n"))
