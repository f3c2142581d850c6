"""What a node says when it begins to serve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from indlet.cli.serving import _announce, bind
from indlet.settings import Hierarchy, Node, Settings


@pytest.mark.parametrize("public", ["", "https://reports.example.org/indlet"])
def test_a_node_says_where_it_listens(capsys: pytest.CaptureFixture[str], public: str) -> None:
    whole = Settings(
        node=Node(host="127.0.0.1", port=0, base_url=public), hierarchy=(Hierarchy("/srv/papers"),)
    )
    bound, settings = bind(whole)
    bound.close()
    _announce(settings, searched=True)
    said = capsys.readouterr().out
    here = f"http://127.0.0.1:{settings.node.port}"
    assert f"indlet harvest {public or here}/ft-oai" in said
    assert (f"listens   {here}/" in said) == bool(public)
    assert f"search    {public or here}/" in said and "indlet password" in said
    _announce(replace(settings, hierarchy=()), searched=True)
    assert "oai" not in capsys.readouterr().out  # nothing is advertised that does not answer
