"""What can be chosen about the study of overlays without trackers."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from linnet.lab.errors import LabError

EPSILONS = (1.0, 2.0, 3.0, 5.0, 8.0, 15.0)
HASHES = (1, 4, 7)
FAILURES = (0.1, 0.3)
SHARES = (0.1, 0.3)
"""Of liars."""
RING_SIZES = (100, 1000, 10_000)
FANOUTS = (2, 3, 5)
SYNTHETIC, TWITTER, LASTFM = "drawn", "twitter", "lastfm"
TWITTER_SCALE = "twitter at scale"
"""Where interests come from."""


class OverlayParameters(Struct, frozen=True, kw_only=True):
    """How much is run."""

    data: str = ""
    """A folder with real subscriptions, availability and latencies; without them they are drawn."""
    nodes: int = 120
    """Of each simulated overlay."""
    topics: int = 60
    """Topics of an overlay at most."""
    subscriptions: int = 8
    """Of a node, where they are drawn; of real ones the most that count."""
    rounds: int = 60
    """Rounds of gossip after the warm-up of each overlay."""
    repeats: int = 1
    """Runs of each overlay, with other seeds."""
    attack_nodes: int = 400
    """Nodes of the runs that attack peer sampling."""
    attack_rounds: int = 400
    attack_repeats: int = 1
    filter_users: int = 200
    """Users whose filters are compared."""
    ring_sizes: tuple[int, ...] = RING_SIZES
    ring_events: int = 5
    growing: tuple[int, ...] = (2, 8, 32)
    """Subscriptions of a node in the runs about degrees."""
    scale: int = 0
    """Nodes, and topics, of one large overlay; 0: none. The published scale is 10000."""
    seed: int = 1

    def checked(self) -> OverlayParameters:
        """These parameters; `LabError` says what cannot be run."""
        if self.data and not Path(self.data).is_dir():
            raise LabError(f"--data {self.data}: there is no such folder")
        if not 16 <= self.nodes <= 5000 or self.rounds < 5 or self.repeats < 1:
            raise LabError("--nodes: give 16 to 5000; --rounds: 5 or more; --repeats: 1 or more")
        if not 2 <= self.topics <= 5000 or not 1 <= self.subscriptions <= self.topics:
            raise LabError("--topics: give 2 to 5000, and --subscriptions: no more than that")
        if self.attack_nodes < 50 or self.attack_rounds < 10 or self.attack_repeats < 1:
            raise LabError("--attack-nodes: give 50 or more; --attack-rounds: 10 or more")
        if not 20 <= self.filter_users <= 2000:
            raise LabError("--filter-users: give 20 to 2000")
        if not self.ring_sizes or min(self.ring_sizes) < 10 or max(self.ring_sizes) > 100_000:
            raise LabError("--ring-sizes: give some from 10 to 100000")
        if any(not 1 <= each <= self.topics for each in self.growing):
            raise LabError(f"--growing: give some from 1 to the number of topics, {self.topics}")
        if self.scale and not 100 <= self.scale <= 20_000:
            raise LabError("--scale: give 0, or 100 to 20000")
        return self
