"""Two nodes of content, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.content.market import Market, trading


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    """Two nodes that know each other."""
    at: Path = tmp_path_factory.mktemp("market")
    with trading(at / "ada") as ada, trading(at / "bea", ada.address) as bea:
        yield Market(ada, bea)
