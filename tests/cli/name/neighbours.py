"""What the tests of `linnet name` share."""

from __future__ import annotations

from tests.cli.shell import Linnet

from linnet.identity.text import Sort, to_text
from linnet.net.clock import Clock

LIMIT = 30.0
MUSIC, TECH = (to_text(Sort.TOPIC, letter * 32) for letter in (b"m", b"t"))


class Neighbours:
    """The command line of each."""

    def __init__(self, relay: Linnet, alice: Linnet, bob: Linnet, carol: Linnet) -> None:
        self.relay, self.alice, self.bob, self.carol = relay, alice, bob, carol
        self.person = {
            each.home.name: str(each.json("status")["person"]) for each in (relay, alice, bob, carol)
        }

    def publish(self, who: Linnet, label: str, *options: str) -> None:
        """Publish, and wait until the relay keeps it."""
        version = who.json("name", "publish", label, *options)["version"]
        keeper = self.relay.address.partition("@")[0]
        clock = Clock()
        limit = clock.now() + LIMIT
        while {"device": keeper, "refusal": None} not in [
            told
            for name in who.json("name", "list")["names"]
            if name["version"] == version
            for told in name["told"]
        ]:
            assert clock.now() < limit
