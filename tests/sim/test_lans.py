"""Local networks in simulation: whole nodes that find each other with no internet and much loss."""

from __future__ import annotations

from random import Random

import pytest

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.edge.announcement import make_announcement
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanStatus, NetworkStatus
from linnet.edge.config import PresenceConfig
from linnet.identity.keys import SigningKey
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Connect, Start
from linnet.peer.peer import Peer
from linnet.sim.network import Network
from linnet.sim.seeded_random import SeededEntropy, named_luck
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.testing.networks import RowTrace, steady_links

TOPIC = TopicId(b"t" * 32)
PERIOD = PresenceConfig().period


class Village:
    """Nodes that nobody can dial from outside."""

    def __init__(self, count: int, seed: int = 1) -> None:
        self.trace = RowTrace()
        self.network = Network(seed, steady_links(), self.trace)
        self.peers: list[PeerId] = []
        for number in range(count):
            identity = known_identity(f"node {number}")
            name = f"node/{number}"
            machine = Peer(
                PeerConfig(lan=PresenceConfig()),
                identity,
                MemoryStore(),
                named_luck(seed, name),
                entropy=SeededEntropy(seed, name),
            )
            self.network.add(identity.peer, machine, dialable=False)
            self.peers.append(identity.peer)
            self.network.ask(identity.peer, Start())

    def allow(self, network: bytes, peers: list[PeerId]) -> None:
        for peer in peers:
            self.network.ask(peer, AllowOnNetwork(TOPIC, network, True))

    def status(self, peer: PeerId, network: bytes) -> NetworkStatus:
        request = self.network.ask(peer, ExamineLan())
        self.network.run(self.network.elapsed)
        answer = self.network.answers[request]
        assert isinstance(answer, LanStatus)
        return next(each for each in answer.networks if each.network == network)

    def seen(self, peer: PeerId, network: bytes) -> set[PeerId]:
        return {contact.device for contact in self.status(peer, network).peers}


@pytest.mark.parametrize(("loss", "seed"), [(0.0, 1), (0.5, 1), (0.5, 2), (0.5, 3)])
def test_all_see_all_within_three_periods(loss: float, seed: int) -> None:
    village = Village(30, seed)
    home = village.network.lan("home", village.peers, loss=loss)
    village.allow(home, village.peers)
    village.network.run(3 * PERIOD)
    for peer in village.peers:
        assert village.seen(peer, home) == set(village.peers) - {peer}


def test_at_three_quarters_loss_the_view_stays_nearly_whole() -> None:
    village = Village(20)
    home = village.network.lan("home", village.peers, loss=0.75)
    village.allow(home, village.peers)
    missing = 0
    for period in range(6, 13):
        village.network.run(period * PERIOD)
        missing += sum(19 - len(village.seen(peer, home)) for peer in village.peers)
    # Four losses in a row come in a third of all cases: without looking for the silent that many were out.
    assert missing < 0.01 * 7 * 20 * 19


def test_who_allowed_nothing_is_neither_seen_nor_sees() -> None:
    village = Village(3)
    home = village.network.lan("home", village.peers)
    village.allow(home, village.peers[:2])
    village.network.run(3 * PERIOD)
    one, two, quiet = village.peers
    assert village.seen(one, home) == {two}
    assert village.seen(quiet, home) == set()
    assert village.network.linked(quiet) == []


def test_two_networks_see_nothing_of_each_other_but_the_one_on_both_sees_both() -> None:
    village = Village(5)
    left, middle, right = village.peers[:2], village.peers[2], village.peers[3:]
    home = village.network.lan("home", [*left, middle])
    cafe = village.network.lan("cafe", [middle, *right])
    village.allow(home, [*left, middle])
    village.allow(cafe, [middle, *right])
    village.network.run(3 * PERIOD)
    assert village.seen(left[0], home) == {left[1], middle}
    assert village.seen(right[0], cafe) == {right[1], middle}
    assert village.seen(middle, home) == set(left)
    assert village.seen(middle, cafe) == set(right)


def test_who_leaves_is_gone_after_the_expiry_and_its_links_are_cut() -> None:
    village = Village(3)
    one, two, three = village.peers
    home = village.network.lan("home", village.peers)
    village.allow(home, village.peers)
    village.network.run(10.0)
    village.network.lan("home", [one, two])
    assert village.seen(one, home) == {two, three}
    village.network.run(10.0 + PresenceConfig().expiry + PERIOD)
    assert village.seen(one, home) == {two}
    village.network.run(60.0)
    assert three not in village.network.linked(one)


def test_a_crash_is_noticed_by_silence() -> None:
    village = Village(3)
    home = village.network.lan("home", village.peers)
    village.allow(home, village.peers)
    village.network.run(10.0)
    one, two, three = village.peers
    village.network.crash(three)
    village.network.run(40.0)
    assert village.seen(one, home) == {two}


def test_whoever_is_on_the_same_network_is_reached_there_though_nobody_can_dial_it() -> None:
    village = Village(2)
    one, two = village.peers
    home = village.network.lan("home", village.peers)
    village.allow(home, village.peers)
    village.network.run(10.0)
    [contact] = village.status(one, home).peers
    village.network.run(60.0)
    assert village.network.linked(one) == [], "nobody needed the link"
    village.network.ask(one, Connect(Contact(two, ("tls://two:1",))))
    village.network.run(80.0)
    assert village.network.linked(one) == []
    village.network.ask(one, Connect(Contact(*contact)))
    village.network.run(120.0)
    assert village.network.linked(one) == [two]
    village.network.partition([[one], [two]])
    village.network.run(125.0)
    assert village.network.linked(one) == [two], "a cut of the internet does not matter here"


def test_a_flood_of_made_up_nodes_is_bounded_and_those_who_are_real_are_found() -> None:
    village = Village(4)
    home = village.network.lan("home", village.peers)
    village.allow(home, village.peers)
    luck = Random(5)
    for number in range(200):
        key = SigningKey(luck.randbytes(32))
        source = f"10.9.{number % 3}.1"
        village.network.at(
            number / 20.0,
            lambda key=key, source=source: village.network.shout(  # type: ignore[misc]
                "home", source, make_announcement(key, 1, bytes(8))
            ),
        )
    village.network.run(3 * PERIOD)
    for peer in village.peers:
        assert village.seen(peer, home) == set(village.peers) - {peer}
        assert village.status(peer, home).heard <= 3 + 3 * PresenceConfig().source_entries
    refused = [row for row in village.trace.rows if row.reason == Reason.WRONG_KEY]
    assert refused, "meeting those who cannot prove their key fails by name"


def test_equal_seeds_give_equal_histories() -> None:
    def history() -> list[tuple[float, str]]:
        village = Village(6, seed=9)
        home = village.network.lan("home", village.peers, loss=0.3)
        village.allow(home, village.peers)
        village.network.run(20.0)
        return [(row.time, row.kind) for row in village.trace.rows]

    assert history() == history()


def test_a_link_made_for_meeting_goes_when_nobody_needs_it() -> None:
    """Who is worth a link is for the overlay to say."""
    village = Village(2)
    home = village.network.lan("home", village.peers)
    village.allow(home, village.peers)
    village.network.run(5.0)
    assert village.network.linked(village.peers[0]) == [village.peers[1]]
    village.network.run(60.0)
    assert village.network.linked(village.peers[0]) == []
