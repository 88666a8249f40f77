"""A host and a guest, each a node in a process of its own, and a place called `tea`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.place.parlour import Parlour
from tests.cli.village import up


@pytest.fixture(scope="session")
def parlour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parlour]:
    """Two nodes in processes, and a place of one that the other has entered."""
    at: Path = tmp_path_factory.mktemp("parlour")
    with up(at / "ada") as ada, up(at / "bea") as bea:
        yield Parlour(ada, bea)
