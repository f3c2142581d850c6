"""An element of a response as bytes that stand alone, charged to the budget of the response."""

from __future__ import annotations

from lxml import etree

from indlet.limits import Budget


class _ChargedBuffer:
    """Takes what is written as long as the budget lasts."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self.parts = budget, list[bytes]()

    def write(self, data: bytes) -> None:
        self._budget.charge(len(data))
        self.parts.append(data)


def canonical(node: etree._Element, budget: Budget | None = None) -> bytes:
    """An element as bytes that stand alone, with the declarations that it needs and no others.

    Each element repeats the declarations that the one around it has no use for, so a namespace of some
    kilobytes can be written thousands of times: BadResponse as soon as the budget is spent.
    """
    # Relative namespaces have no canonical form; such an element keeps all declarations in scope.
    try:
        if budget is None:
            return etree.tostring(node, method="c14n", exclusive=True, with_comments=False, with_tail=False)
        out = _ChargedBuffer(budget)
        etree.ElementTree(node).write_c14n(out, exclusive=True, with_comments=False)  # type: ignore[call-arg, arg-type]
        return b"".join(out.parts)
    except etree.LxmlError:
        plain = etree.tostring(node, with_tail=False)
        if budget is not None:
            budget.charge(len(plain))
        return plain
