from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.identity.typed import Typed, up
from tests.cli.village import LIMIT

from linnet.net.clock import Clock


class Lost:
    """Ada's laptop with rooms of hers, her phone in two of them, and Bea."""

    def __init__(self, laptop: Typed, phone: Typed, bea: Typed, phrase: str) -> None:
        self.laptop, self.phone, self.bea, self.phrase = laptop, phone, bea, phrase
        self.rooms: dict[str, str] = {}
        for name in ("tea", "chess"):
            self.rooms[name] = laptop.json("room", "create", name)["room"]
            bea.ok("room", "join", laptop.ok("room", "invite", name).strip())
            # Who is a member needs no invitation for another device.
            phone.ok("room", "join", self.rooms[name], "--at", bea.address)

    def until(self, look: Callable[[], object]) -> None:
        """Look until something is seen."""
        clock = Clock()
        limit = clock.now() + LIMIT
        while not look():
            assert clock.now() < limit


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lost]:
    at = tmp_path_factory.mktemp("lost")
    laptop, phone, bea = Typed(at / "laptop"), Typed(at / "phone"), Typed(at / "bea")
    laptop.ok("init", "--label", "laptop")
    bea.ok("init", "--label", "bea")
    phrase = str(laptop.json("id", "backup", "--yes")["phrase"])
    phone.ok("id", "recover", "--phrase-file", "-", "--label", "phone", given=phrase)
    with up(at / "laptop") as one, up(at / "phone") as two, up(at / "bea") as three:
        yield Lost(one, two, three, phrase)


@pytest.fixture
def shell(tmp_path: Path) -> Typed:
    return Typed(tmp_path / "home")
