"""Proxies that delay, reorder, repeat, alter, say different things to different clients, and lie of keeping.

With real machines: what each brings about, what is written of it, and how a client gets around it. What one
withholds is in `test_bad_proxies.py`.
"""

from __future__ import annotations

from typing import cast

import pytest
from msgspec.structs import replace
from tests.edge.coast import Coast, Hostile, Watched

from linnet.core.effects import Send
from linnet.core.ids import PeerId
from linnet.core.inputs import Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data, Heads
from linnet.edge.config import EdgeConfig
from linnet.peer.interface import Effect, Input
from linnet.trace.records import Kind

SENT = [f"{number}" for number in range(40)]
BOTH = EdgeConfig(at_once=2)


class Delaying(Hostile):
    """Events wait for half a minute, until it has something else to do after that."""

    def __init__(self, coast: Coast, name: str) -> None:
        super().__init__(coast, name)
        self._later: list[tuple[float, PeerId, Message]] = []

    def handle(self, event: Input, now: float) -> list[Effect]:
        effects = super().handle(event, now)
        due = [each for each in self._later if each[0] <= now]
        self._later = [each for each in self._later if each[0] > now]
        return [*effects, *(Send(peer, message) for _, peer, message in due)]

    def twist(self, peer: PeerId, message: Message, now: float) -> list[Message]:
        if not isinstance(message, Data):
            return [message]
        self._later.append((now + 30.0, peer, message))
        return []


class Reordering(Hostile):
    """Of every five events the last is sent first."""

    def __init__(self, coast: Coast, name: str) -> None:
        super().__init__(coast, name)
        self._held: list[Message] = []

    def twist(self, peer: PeerId, message: Message, now: float) -> list[Message]:
        if not isinstance(message, Data):
            return [message]
        self._held.append(message)
        if len(self._held) < 5:
            return []
        held, self._held = self._held, []
        return held[::-1]


class Repeating(Hostile):
    """Everything is sent fifty times."""

    def twist(self, peer: PeerId, message: Message, now: float) -> list[Message]:
        return [message] * 50 if isinstance(message, Data) else [message]


class Altering(Hostile):
    """A byte of every event is another."""

    def twist(self, peer: PeerId, message: Message, now: float) -> list[Message]:
        if not isinstance(message, Data):
            return [message]
        first, *rest = message.unit.tails
        changed = replace(message.unit, tails=(first[:-1] + bytes((first[-1] ^ 1,)), *rest))
        return [replace(message, unit=changed)]


class Equivocating(Hostile):
    """It tells one client of events that do not exist, and the others that there is nothing."""

    def twist(self, peer: PeerId, message: Message, now: float) -> list[Message]:
        if isinstance(message, Data):
            return []
        if not isinstance(message, Heads):
            return [message]
        if self._coast.name(peer) != "m0":
            return [replace(message, chains=())]
        return [replace(message, chains=tuple(replace(each, last=each.last + 7) for each in message.chains))]


class Forgetting(Hostile):
    """It confirms what its clients say, and passes nothing of it on to the network."""

    def _turned(self, effect: Effect, now: float) -> list[Effect]:
        is_said = isinstance(effect, Send) and isinstance(effect.message, Data | Heads)
        return [] if is_said and self._coast.name(cast("Send[Message]", effect).peer) == "p0" else [effect]


def turn(coast: Coast, name: str, kind: type[Watched]) -> None:
    """From now on this proxy is a bad one."""
    coast.crash(name)
    coast.begin(name, kind(coast, name))


def told(kind: type[Watched], edge: EdgeConfig, wait: float = 60.0) -> tuple[Coast, int]:
    """A mobile that hears forty events, its first proxy being of this kind."""
    coast = Coast("p0", "q0", "q1", "m0", edge=edge)
    turn(coast, "q0", kind)
    mine = coast.subscribe("m0", name="app", since=0.0, wait=5.0)
    for body in SENT:
        coast.publish("p0", body, wait=0.2)
    coast.run(wait)
    assert coast.missed("m0", mine) == []
    return coast, mine


def reasons(coast: Coast, name: str, peer: str) -> set[Reason | None]:
    """Why this node wrote of that one, for the worse."""
    kinds = (Kind.REJECTED, Kind.LINK_DOWN)
    found = [record for kind in kinds for record in coast.records(name, kind)]
    return {record.reason for record in found if record.peer == coast.peer(peer)}


@pytest.mark.parametrize("kind", [Delaying, Reordering, Repeating, Altering])
def test_beside_one_that_is_honest_a_hostile_one_changes_nothing(kind: type[Watched]) -> None:
    coast, mine = told(kind, BOTH, wait=1.0)
    assert coast.bodies("m0", mine) == SENT


def test_delays_are_late_and_nothing_else() -> None:
    """From a proxy that is slow, or from a network that is, it cannot be told: nothing is written of it."""
    coast, mine = told(Delaying, EdgeConfig())
    assert coast.bodies("m0", mine) == SENT
    assert reasons(coast, "m0", "q0") == set()


def test_another_order_is_put_right_before_the_application_sees_it() -> None:
    coast, mine = told(Reordering, EdgeConfig())
    assert coast.bodies("m0", mine) == SENT


def test_who_repeats_is_cut_off_and_the_next_is_turned_to() -> None:
    coast, mine = told(Repeating, EdgeConfig())
    assert coast.bodies("m0", mine) == SENT
    assert Reason.REPLAYING in reasons(coast, "m0", "q0")
    assert coast.records("m0", Kind.DUPLICATE)
    assert [proxy.served for proxy in coast.edge("m0").proxies] == [0, 1]


def test_what_was_altered_is_refused_who_does_it_is_cut_off_and_the_next_is_turned_to() -> None:
    coast, mine = told(Altering, EdgeConfig())
    assert coast.bodies("m0", mine) == SENT
    assert {Reason.BAD_SIGNATURE, Reason.FORGING} <= reasons(coast, "m0", "q0")
    assert [proxy.served for proxy in coast.edge("m0").proxies] == [0, 1]


def test_one_that_tells_two_clients_different_things_keeps_neither_from_the_events_that_are() -> None:
    """Heads are not signed. Those of events that do not exist come to nothing, and that is written down."""
    coast = Coast("p0", "q0", "q1", "m0", "m1", edge=BOTH)
    turn(coast, "q0", Equivocating)
    numbers = {name: coast.subscribe(name, name="app", since=0.0, wait=5.0) for name in ("m0", "m1")}
    for body in SENT:
        coast.publish("p0", body, wait=0.2)
    coast.run(1200.0)
    for name, number in numbers.items():
        assert coast.bodies(name, number) == SENT
        assert coast.missed(name, number) == []
    unheard = [record for record in coast.records("m0", Kind.DROPPED) if record.note == "hearsay"]
    assert unheard
    assert {record.reason for record in unheard} == {Reason.GAP_UNFILLED}
    assert not coast.records("m1", Kind.DROPPED)


@pytest.mark.parametrize("edge", [EdgeConfig(), BOTH], ids=["alone", "beside one that is honest"])
def test_what_one_confirmed_and_kept_to_itself_comes_out_through_another(edge: EdgeConfig) -> None:
    """That the only proxy does so cannot be seen; what was said is still here, and any other asks for it."""
    coast = Coast("p0", "q0", "q1", "m0", edge=edge)
    turn(coast, "q0", Forgetting)
    theirs = coast.subscribe("p0", name="app", since=0.0)
    coast.subscribe("m0", name="app", wait=5.0)
    for body in SENT[:5]:
        coast.publish("m0", body, wait=0.5)
    coast.run(30.0)
    assert coast.bodies("p0", theirs) == ([] if edge.at_once == 1 else SENT[:5])
    assert reasons(coast, "m0", "q0") == set()
    coast.crash("q0")
    coast.run(60.0)
    assert coast.bodies("p0", theirs) == SENT[:5]


def test_a_proxy_that_makes_up_answers_is_not_believed() -> None:
    """An answer that nobody asked for changes nothing, whatever it says."""
    coast, _ = told(Watched, EdgeConfig(), wait=1.0)
    answers = [message for *_, message, _ in coast.heard if type(message).__name__ == "Served"]
    mobile = coast.network.machine(coast.peer("m0"))
    effects = mobile.handle(Received(coast.peer("q0"), answers[0]), coast.network.now)
    assert [getattr(effect, "reason", None) for effect in effects] == [Reason.STALE]
