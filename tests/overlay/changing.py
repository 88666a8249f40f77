"""Real nodes on a simulated network that know both overlays, and streams that change over between them."""

from __future__ import annotations

from random import Random

from tests.streams.village import STREAM, Village

from linnet.core.ids import Contact
from linnet.event.event import Event
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.peer.config import PeerConfig
from linnet.peer.peer import Peer
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.commands import Publish, SwitchOverlay

QUICK = TrackerlessConfig(period=2.0, hurried=0, release_delay=5.0, seek_pause=4.0, overlap=60.0)


class ChangingVillage(Village):
    """A tracker t0, and peers p0… who know it, and p0 to begin with."""

    def machine(self, name: str) -> Peer:
        def contact(other: str) -> Contact:
            return Contact(self.peer(other), (f"tls://{other}:1",))

        config = PeerConfig(
            listens=(f"tls://{name}:1",),
            trackers=(contact("t0"),),
            is_tracker=name == "t0",
            trackerless=QUICK if name[0] == "p" else None,
            bootstrap=(contact("p0"), contact("p1")),
            delivery=self._delivery,
        )
        luck = Random(f"{self.seed}/{name}")
        entropy = SeededEntropy(self.seed, name)
        return Peer(config, self.identity[name], self.stores[name], luck, self._verifier, entropy=entropy)

    def switch(self, overlay: Overlay, *names: str) -> None:
        """These nodes change over."""
        for name in names:
            self.network.ask(self.peer(name), SwitchOverlay(STREAM, overlay))

    def talk(self, seconds: int, first: int, *names: str) -> int:
        """Each of these says a number in turn, one in a second; returns the next number."""
        for number in range(first, first + seconds):
            name = names[number % len(names)]
            self.network.ask(self.peer(name), Publish(STREAM, (f"{name} {number}".encode(),)))
            self.run(1.0)
        return first + seconds

    def by_publisher(self, name: str, subscription: int) -> dict[bytes, list[int]]:
        """The numbers that a subscriber was handed, in order, of each publisher."""
        heard: dict[bytes, list[int]] = {}
        for item in self.items[name, subscription]:
            if isinstance(item, Event):
                publisher, _, number = item.body.partition(b" ")
                heard.setdefault(publisher, []).append(int(number))
        return heard
