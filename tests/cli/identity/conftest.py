from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import hasten, until


class Lost:
    """Ada's laptop with rooms of hers, her phone in two of them, and Bea."""

    def __init__(self, laptop: Linnet, phone: Linnet, bea: Linnet, phrase: str) -> None:
        self.laptop, self.phone, self.bea, self.phrase = laptop, phone, bea, phrase
        self.rooms: dict[str, str] = {}
        for name in ("tea", "chess"):
            self.rooms[name] = laptop.json("room", "create", name)["room"]
            bea.ok("room", "join", laptop.ok("room", "invite", name).strip())
            # Who is a member needs no invitation for another device.
            phone.ok("room", "join", self.rooms[name], "--at", bea.address)

    until = staticmethod(until)


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lost]:
    at = tmp_path_factory.mktemp("lost")
    laptop, phone, bea = Linnet(at / "laptop"), Linnet(at / "phone"), Linnet(at / "bea")
    laptop.ok("init", "--label", "laptop")
    bea.ok("init", "--label", "bea")
    phrase = str(laptop.json("id", "backup", "--yes")["phrase"])
    phone.ok("id", "recover", "--phrase-file", "-", "--label", "phone", given=phrase)
    for each in (laptop, phone, bea):
        hasten(each)
    with laptop.up(), phone.up(), bea.up():
        yield Lost(laptop, phone, bea, phrase)
