"""Requests on their way to a host who is gone: relays that send up to each other stop at once, and say so."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from itertools import count

from msgspec.structs import replace
from tests.places.sealed.scene import Node

from linnet.core.effects import Send
from linnet.core.ids import PeerId
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy, sign_deed
from linnet.places.guest_requests import GuestRequests
from linnet.places.messages import Heard, Talk, Unheard
from linnet.places.multicast.sealed_requests import RequestSender, sign_heard
from linnet.places.place_setup import Parts
from linnet.sim.seeded_random import SeededEntropy
from linnet.testing.identities import known_identity

HOST, ASKER = known_identity("host"), known_identity("asker")
RELAYS = ("ann", "bob", "cid")
KEY = SigningKey.generate(random.Random(1).randbytes)
DEED = sign_deed(KEY, 1, Policy.PUBLIC, HOST.author, (), ())
CONFIG = PlacesConfig()


class Circle:
    """Three relays, each of whom has the next one above it; an asker below the first."""

    def __init__(self, latency: float = 0.02) -> None:
        self.latency = latency
        self.now = 1000.0
        self.outboxes = {known_identity(name).peer: Outbox() for name in RELAYS}
        self.parts = {
            peer: Parts(DEED, Node(name).context, CONFIG, out)
            for name, (peer, out) in zip(RELAYS, self.outboxes.items(), strict=True)
        }
        self.talks = {peer: GuestRequests(parts) for peer, parts in self.parts.items()}
        self.first, self.second, self.third = self.talks
        self.sent: Counter[str] = Counter()
        """By the relays."""
        self.told: list[Heard | Unheard] = []
        """To the asker."""
        self.host: list[tuple[PeerId, Talk]] = []
        """To the host, and by whom."""
        self._asking = RequestSender(DEED.place, ASKER.device, ASKER.card, CONFIG, SeededEntropy(1, "talk"))
        self._order = count()
        self._flying: list[tuple[float, int, PeerId, PeerId, Talk | Heard | Unheard]] = []
        for peer, above in (
            (self.first, self.second),
            (self.second, self.third),
            (self.third, self.first),
        ):
            self.parts[peer].tree.connect_up(above)

    def ask(self) -> Talk:
        """The one piece of a new request."""
        (piece,) = self._asking.say(HOST.peer, b"_message\npsst")[1]
        return piece

    def bring(self, source: PeerId, to: PeerId, message: Talk | Heard | Unheard) -> None:
        """Something is on its way."""
        heapq.heappush(self._flying, (self.now + self.latency, next(self._order), source, to, message))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._flying and self._flying[0][0] <= until:
            self.now, _, source, to, message = heapq.heappop(self._flying)
            if to == ASKER.peer:
                assert isinstance(message, Heard | Unheard)
                self.told.append(message)
                continue
            if to == HOST.peer:
                assert isinstance(message, Talk)
                self.host.append((source, message))
                continue
            self._hand(source, to, message)
        self.now = until

    def _hand(self, source: PeerId, to: PeerId, message: Talk | Heard | Unheard) -> None:
        talks = self.talks[to]
        match message:
            case Talk():
                talks.handle_talk(source, message, True, self.now)
            case Heard():
                talks.handle_heard(source, message)
            case Unheard():
                talks.handle_unheard(source, message)
        for effect in self.outboxes[to].take():
            if isinstance(effect, Send):
                assert isinstance(effect.message, Talk | Heard | Unheard)
                self.sent[type(effect.message).__name__] += 1
                self.bring(to, effect.peer, effect.message)


def test_a_request_goes_round_once_and_who_made_it_is_told() -> None:
    world = Circle()
    piece = world.ask()
    for times in (1, 2, 3):  # said again
        world.bring(ASKER.peer, world.first, piece)
        world.run(CONFIG.replay_timeout)
        assert world.told == [Unheard(DEED.place, ASKER.peer, piece.request)] * times
        assert world.sent == {"Talk": 3 * times, "Unheard": 4 * times}


def test_two_requests_at_once_go_round_once_each() -> None:
    world = Circle()
    for piece in (world.ask(), world.ask()):
        world.bring(ASKER.peer, world.first, piece)
    world.run(60)
    assert len(world.told) == 2
    assert world.sent == {"Talk": 6, "Unheard": 8}


def test_one_that_comes_back_to_who_made_it_goes_no_further() -> None:
    world = Circle()
    out = Outbox()
    asker = Parts(DEED, Node("asker").context, CONFIG, out)
    asker.tree.connect_up(world.first)
    back = replace(world.ask(), hops=3)
    GuestRequests(asker).handle_talk(world.third, back, True, world.now)
    sends = [effect for effect in out.take() if isinstance(effect, Send)]
    assert sends == [Send(world.third, Unheard(DEED.place, ASKER.peer, back.request))]


def test_in_a_circle_that_takes_longer_than_the_pause_between_two_tries_it_ends_as_well() -> None:
    """Then nobody can tell that it was not said again; but it goes on for so many hops, and no word of it
    goes on for ever."""
    world = Circle(latency=CONFIG.replay_timeout)
    world.bring(ASKER.peer, world.first, world.ask())
    world.run(3600)
    assert world.sent["Talk"] == 64
    assert world.sent["Unheard"] <= 64


def test_the_receipt_finds_back_from_a_host_who_is_there_again() -> None:
    world = Circle()
    piece = world.ask()
    world.bring(ASKER.peer, world.first, piece)
    world.run(CONFIG.replay_timeout)
    world.parts[world.third].context.links[HOST.peer] = None
    world.bring(ASKER.peer, world.first, piece)
    world.run(CONFIG.replay_timeout)
    ((source, heard),) = world.host
    assert source == world.third
    receipt = sign_heard(HOST.device, DEED.place, ASKER.peer, heard.request, None)
    world.bring(HOST.peer, source, receipt)
    world.run(60)
    assert world.told[1:] == [receipt]
    assert world.sent["Heard"] == 3


def test_a_request_that_comes_by_a_longer_way_when_it_is_said_again_is_passed_on() -> None:
    world = Circle()
    piece = world.ask()
    world.bring(ASKER.peer, world.third, piece)
    world.parts[world.third].context.links[HOST.peer] = None
    world.run(CONFIG.replay_timeout)
    world.bring(ASKER.peer, world.first, piece)
    world.run(CONFIG.replay_timeout)
    assert [(source, heard.hops) for source, heard in world.host] == [(world.third, 1), (world.third, 3)]
    receipt = sign_heard(HOST.device, DEED.place, ASKER.peer, piece.request, None)
    world.bring(HOST.peer, world.third, receipt)
    world.run(60)
    assert world.told == [receipt]
    assert world.sent["Heard"] == 3, "back the way that it came last"
