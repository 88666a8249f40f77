"""Keys that name somebody else's address as their own: how often their neighbours knock there.

The machines and the budget are those that ship; the network between them and the time are simulated.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from random import Random

from tests.peer.test_links import Driven
from tests.streams.village import Eavesdropped, Village

from linnet.core.effects import AfterCommit, Dial, Hold, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.net.dial_budget import DialBudget, Turn
from linnet.overlay.config import MemberConfig, TrackerConfig
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.peer.interface import Effect, Input
from linnet.peer.links import RedialDue
from linnet.peer.peer import Peer

CROWD, KEYS, HOUR = 30, 50, 3600.0
HONEST, LIARS, TOPICS = 12, 16, 4
VICTIM = "tls://203.0.113.9:443"
ROUNDS, ROUND = 10, 60.0


def test_in_an_hour_fifty_keys_at_one_address_have_it_dialled_as_often_as_one() -> None:
    """Thirty nodes each need a link to each of the keys, as neighbours in many topics do."""
    asked = made = most_of_one = 0
    keys = [PeerId(number.to_bytes(32, "big")) for number in range(KEYS)]
    for seed in range(CROWD):
        links, budget = Driven(LinkConfig(), Random(seed)), DialBudget()
        due = [(0.0, key) for key in keys]
        of_this = 0
        while due:
            now, key = heapq.heappop(due)
            if now > HOUR:
                break
            held = links.hold(Hold(key, (VICTIM,), "topic"), now) if key not in links.links._links else None
            effects = links.redial(RedialDue(key), now) if held is None else held
            for dial in _dials(effects):
                asked += 1
                if budget.take(dial.peer, VICTIM, now) is Turn.GO:
                    of_this += 1
                    budget.give_back(dial.peer, VICTIM, False, now)
                effects += links.dial_failed(key, Reason.DIAL_TIMEOUT, now)
            for effect in effects:
                if isinstance(effect, SetTimer) and effect.timer == RedialDue(key):
                    heapq.heappush(due, (now + effect.delay, key))
        made += of_this
        most_of_one = max(most_of_one, of_this)
    print(f"in an hour {CROWD} nodes wanted to dial the victim {asked} times, and did {made} times")
    assert asked > 100 * CROWD * KEYS, "what each key by itself would cause"
    assert made <= CROWD * (20 + 12)
    assert most_of_one >= 20 + 11, "and it is dialled as often as it may be"


class Counted(Eavesdropped):
    """An honest node: counts the attempts at the victim that its machine wants, and those that are made."""

    def __init__(self, village: Reflection, name: str) -> None:
        super().__init__(village, name)
        self._scene = village
        self._budget = DialBudget()

    def handle(self, event: Input, now: float) -> list[Effect]:
        effects = super().handle(event, now)
        for dial in _dials(effects):
            for place in dial.hints:
                if place == VICTIM:
                    self._scene.asked += 1
                    if self._budget.take(dial.peer, place, now) is Turn.GO:
                        self._scene.made += 1
                        self._budget.give_back(dial.peer, place, False, now)
        return effects


class Silent(Eavesdropped):
    """A liar: takes places in topics by its address alone, and dials nobody but the tracker."""

    def __init__(self, village: Reflection, name: str) -> None:
        super().__init__(village, name)
        self._tracker = village.peer("t0")

    def handle(self, event: Input, now: float) -> list[Effect]:
        return [each for each in super().handle(event, now) if self._may(each)]

    def _may(self, effect: Effect) -> bool:
        return all(dial.peer == self._tracker for dial in _dials([effect]))


def _dials(effects: Iterable[object]) -> Iterator[Dial]:
    for effect in effects:
        for each in effect.effects if isinstance(effect, AfterCommit) else (effect,):
            if isinstance(each, Dial):
                yield each


class Reflection(Village):
    """Honest nodes p0…, and behind them as many liars."""

    def __init__(self) -> None:
        self.asked = self.made = 0
        liars = tuple(f"p{number}" for number in range(HONEST, HONEST + LIARS))
        self.liars = liars
        links = LinkConfig(ping_period=600.0, ping_timeout=60.0)
        super().__init__(storage=0, rules=(), peers=HONEST + LIARS, dial_only=liars, keep=links)

    def noted(self, name: str) -> Eavesdropped:
        if name[0] != "p":
            return super().noted(name)  # type: ignore[return-value] # it is one
        return Silent(self, name) if name in self.liars else Counted(self, name)

    def machine(self, name: str) -> Peer:
        if name not in self.liars:
            return super().machine(name)
        tracker = Contact(self.peer("t0"), ("tls://t0:1",))
        config = PeerConfig(
            listens=(VICTIM,),
            trackers=(tracker,),
            member=MemberConfig(),
            tracker=TrackerConfig(),
            links=self._keep,
        )
        return Peer(config, self.identity[name], self.stores[name], Random(name), self._verifier)


def test_whom_a_tracker_names_at_one_address_the_others_dial_there_a_few_times() -> None:
    scene = Reflection()
    topics = [f"topic {number}" for number in range(TOPICS)]
    for name in scene.names:
        if name[0] == "p":
            for topic in topics:
                scene.subscribe(name, topic)
    for _ in range(ROUNDS):
        scene.run(ROUND)
    print(f"asked for {scene.asked}, made {scene.made}, by {HONEST} nodes in {ROUNDS * ROUND:g} s")
    assert scene.asked > scene.made > 0
    assert scene.made <= HONEST * (20 + 12 * ROUNDS * ROUND / 3600)
