"""Text into XML: the names of `indlet.oai.xml`, for whoever writes a format."""

from indlet.oai.xml import FORBIDDEN, attribute, element, text

__all__ = ["FORBIDDEN", "attribute", "element", "text"]
