"""Relays that withhold, alter, reorder, replay and forge: found, named and gone around.

The shipped machines in the simulated world; some guests change what they send (tests/places/malice.py). In
each test all honest guests end with everything that the host said and with its state.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from random import Random

import msgspec
import pytest
from msgspec.structs import replace
from tests.places.malice import Altering, AnySend, MaliciousWorld, Twist

from linnet.core.effects import Send
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.inputs import Received
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.event.event import Tail, Unverified
from linnet.peer.interface import Input
from linnet.places.channel.packet import Modifier
from linnet.places.commands import Announce, Announced
from linnet.places.config import PlacesConfig
from linnet.places.messages import Decision, DeedIs, Enter, Replay, Replayed, RollIs, StateIs
from linnet.places.multicast.fragmentation import Head, encode_head
from linnet.places.multicast.tree import RESERVE
from linnet.sim.places.world import HOST
from linnet.trace.records import Kind

encode_tail = msgspec.msgpack.Encoder().encode
decode_tail = msgspec.msgpack.Decoder(Tail).decode
decode_head = msgspec.msgpack.Decoder(Head).decode
SOAK = bool(os.environ.get("LINNET_SOAK"))
SEEDS = range(1, 9 if SOAK else 2)


def course(
    twist: Callable[[], Twist],
    liars: Sequence[str] = ("guest0", "guest3"),
    guests: int = 9,
    said: int = 8,
    seed: int = 1,
    quiet: float = 60.0,
    fanout: int = 3,
) -> MaliciousWorld:
    """A place with some liars, in which something is said; all that is due has come by the end."""
    world = MaliciousWorld(
        guests, seed, {name: twist() for name in liars}, config=PlacesConfig(fanout=fanout)
    )
    play(world, said, quiet)
    return world


def play(world: MaliciousWorld, said: int, quiet: float) -> None:
    world.found()
    for number, name in enumerate(world.guests):
        world.enter(name)
        state = (Modifier("=", f"_early_{number}", b"x" * 40),)
        world.obtain(HOST, Announce(world.place, "_message", state, b"early"), Announced)
    for number in range(said):
        state = (Modifier("=", f"_count_{number % 3}", str(number).encode()),)
        world.obtain(HOST, Announce(world.place, "_message", state, str(number).encode()), Announced)
    world.judged = world.status(HOST).message
    world.network.run(world.network.elapsed + quiet)


def flipped(unit: Unverified) -> Unverified:
    tail = unit.tails[0]
    return replace(unit, tails=(tail[:-1] + bytes([tail[-1] ^ 1]),))


def turned_away(decision: Decision) -> Decision:
    return replace(decision, admitted=False, reason=Reason.NOT_A_MEMBER)


class Withholding(Twist):
    """Brings nothing: neither what is new, nor what is asked for."""

    def sends(self, send: AnySend) -> list[AnySend]:
        return [] if isinstance(send.message, Data | Replayed | StateIs) else [send]


class Reordering(Twist):
    """Sends every five fragments for a neighbour in the opposite order."""

    def __init__(self) -> None:
        self._held: dict[PeerId, list[AnySend]] = {}

    def sends(self, send: AnySend) -> list[AnySend]:
        if not isinstance(send.message, Data):
            return [send]
        held = self._held.setdefault(send.peer, [])
        held.append(send)
        if len(held) < 5:
            return []
        del self._held[send.peer]
        return held[::-1]


class ReplayServer(Twist):
    """Sends with every fragment the three before it once more."""

    def __init__(self) -> None:
        self._past: dict[PeerId, list[AnySend]] = {}

    def sends(self, send: AnySend) -> list[AnySend]:
        if not isinstance(send.message, Data):
            return [send]
        past = self._past.setdefault(send.peer, [])
        past.append(send)
        return [send, *past[-4:-1]]


class StealingEntries(Twist):
    """Says at the host's door what others said at its own."""

    host = PeerId(b"")

    def hears(self, event: Input) -> list[AnySend]:
        if isinstance(event, Received) and isinstance(event.message, Enter):
            return [Send(self.host, event.message)]
        return []


def test_a_relay_that_withholds_everything_is_named_and_left() -> None:
    world = course(Withholding, said=70, guests=7, fanout=2)
    assert world.complete() == []
    assert world.liars_named(Reason.SLOW_PEER) == {"guest0", "guest3"}
    for name in world.honest:
        left = {world.peer(liar) for liar in world.twists if world.named(name, liar, Reason.SLOW_PEER)}
        assert not left & set(world.status(name).upstreams)


def test_an_altered_fragment_is_named_by_its_signature_and_its_sender_is_left() -> None:
    world = course(lambda: Altering(Data, lambda data: replace(data, unit=flipped(data.unit))))
    assert world.complete() == []
    assert world.liars_named(Reason.BAD_SIGNATURE) == {"guest0", "guest3"}
    liars = {world.peer(name) for name in world.twists}
    assert not any(liars & set(world.status(name).upstreams) for name in world.honest)


def test_an_altered_replay_is_named_and_the_next_member_is_asked() -> None:
    def alter(answer: Replayed) -> Replayed:
        return answer if answer.unit is None else replace(answer, unit=flipped(answer.unit))

    class Lying(Altering[Replayed]):
        """Passes on little, so that much is asked for, and answers falsely."""

        def sends(self, send: AnySend) -> Sequence[AnySend]:
            return [] if isinstance(send.message, Data) else list(super().sends(send))

    world = course(lambda: Lying(Replayed, alter), liars=("guest0", "guest1"))
    assert world.complete() == []
    assert world.liars_named(Reason.BAD_SIGNATURE)


class AlteringAll(Twist):
    """Alters whatever can be altered; at its door too, if it is said to."""

    def __init__(self, door: bool) -> None:
        self._door = door

    def sends(self, send: AnySend) -> list[AnySend]:
        match send.message:
            case Data(unit) | Replayed(unit=Unverified() as unit):
                return [Send(send.peer, replace(send.message, unit=flipped(unit)))]
            case StateIs(data=data) if data:
                return [Send(send.peer, replace(send.message, data=data[:-1] + b"!"))]
            case Decision(membership=told) if self._door:
                return [Send(send.peer, replace(send.message, membership=tuple(map(flipped, told))))]
        return [send]


@pytest.mark.parametrize("door", [False, True])
@pytest.mark.parametrize("liars", [("guest0", "guest4"), ("guest0", "guest1")])
def test_where_the_tree_is_full_and_the_only_way_in_alters_everything_there_is_another(
    liars: Sequence[str], door: bool
) -> None:
    """The second pair is all to whom the host sends: whoever comes later comes to them first."""
    world = course(lambda: AlteringAll(door), liars=liars, guests=7, fanout=2)
    assert world.complete() == []
    assert world.liars_named(Reason.BAD_SIGNATURE) == set(liars)
    below = [len(world.status(name).downstreams) for name in (HOST, *world.guests)]
    assert 2 < max(below) <= 2 + RESERVE


def test_fragments_in_another_order_are_put_in_order() -> None:
    world = course(Reordering)
    assert world.complete() == []
    liars = {world.peer(name) for name in world.twists}
    late = [row for row in world.trace.rows() if row.kind == Kind.DUPLICATE and row.peer in liars]
    assert late, "what they held back had come by another way, or was asked for"


def test_fragments_that_come_again_are_known_again_and_told_once() -> None:
    world = course(ReplayServer)
    assert world.complete() == []
    again = {row.peer for row in world.trace.rows() if row.kind == Kind.DUPLICATE}
    assert {world.peer(name) for name in world.twists} <= again
    assert max(world.told.values()) == 1


def test_a_forged_state_is_named_by_its_hash_and_another_is_asked() -> None:
    def forge(page: StateIs) -> StateIs:
        return replace(page, data=page.data[:-1] + b"!") if page.data else page

    world = course(lambda: Altering(StateIs, forge), liars=("guest1", "guest3"))
    assert world.complete() == []
    assert world.liars_named(Reason.STATE_MISMATCH)


def test_a_wrong_generation_is_named_by_the_signature() -> None:
    """Whoever could raise it would make guests mistrust all; who could lower it would let others read on."""

    def regenerate(data: Data) -> Data:
        tail = decode_tail(data.unit.tails[0])
        assert tail.clear is not None
        head = decode_head(tail.clear)
        clear = encode_head(replace(head, generation=head.generation + 1))
        return replace(data, unit=replace(data.unit, tails=(encode_tail(replace(tail, clear=clear)),)))

    world = course(lambda: Altering(Data, regenerate))
    assert world.complete() == []
    assert world.liars_named(Reason.BAD_SIGNATURE) == {"guest0", "guest3"}
    assert {world.status(name).generation for name in world.honest} == {0}


def test_an_entry_that_was_said_elsewhere_is_refused_by_name() -> None:
    world = MaliciousWorld(7, 1, {"guest0": StealingEntries()}, config=PlacesConfig(fanout=2))
    StealingEntries.host = world.peer(HOST)
    play(world, 5, 60.0)
    assert world.complete() == []
    assert world.named(HOST, "guest0", Reason.REPLAYING)


def test_a_forged_deed_with_a_decision_is_refused_by_name() -> None:
    def crown(decision: Decision) -> Decision:
        deed = decision.deed
        forged = None if deed is None else replace(deed, version=deed.version + 1, host=AuthorId(b"\7" * 32))
        return replace(decision, deed=forged)

    world = course(lambda: Altering(Decision, crown))
    assert world.complete() == []
    assert world.liars_named(Reason.BAD_SIGNATURE)
    assert {world.status(name).deed.host for name in world.honest} == {world.identities[HOST].author}


def test_a_decision_with_an_altered_notice_is_refused_by_name() -> None:
    def alter(decision: Decision) -> Decision:
        return replace(decision, membership=tuple(map(flipped, decision.membership)))

    world = course(lambda: Altering(Decision, alter))
    assert world.complete() == []
    assert world.liars_named(Reason.BAD_SIGNATURE)


class Counted(Twist):
    """An honest node of which it is known how often it asked for each fragment."""

    def __init__(self) -> None:
        self.asked: Counter[int | None] = Counter()

    def sends(self, send: AnySend) -> Sequence[AnySend]:
        if isinstance(send.message, Replay):
            self.asked[send.message.fragment] += 1
        return [send]


class CountingWorld(MaliciousWorld):
    @property
    def honest(self) -> list[str]:
        return [name for name in self.guests if isinstance(self.twists[name], Counted)]


def test_of_fragments_that_nobody_said_the_last_alone_is_asked_for_a_few_times() -> None:
    lie = Altering(Decision, lambda decision: replace(decision, next=10**9))
    twists = {f"guest{number}": lie if number in (0, 3) else Counted() for number in range(9)}
    world = CountingWorld(9, 1, twists, config=PlacesConfig(fanout=3))
    play(world, 8, 60.0)
    assert len(world.honest) == 7
    assert world.complete() == []
    assert [world.status(name).missing for name in world.honest] == [0] * 7
    last = world.status(HOST).fragment
    asked = Counter(
        {
            (name, fragment): times
            for name, twist in twists.items()
            if isinstance(twist, Counted)
            for fragment, times in twist.asked.items()
            if fragment is not None and fragment > last
        }
    )
    assert {fragment for _, fragment in asked} == {10**9 - 1}
    assert set(asked.values()) == {PlacesConfig().replay_tries}


def test_who_turns_guests_away_or_sends_them_nowhere_is_gone_around() -> None:
    nowhere = (Contact(PeerId(b"\5" * 32), ("tls://nowhere:1",)),)
    world = course(lambda: Altering(Decision, turned_away))
    assert world.complete() == []
    world = course(lambda: Altering(Decision, lambda decision: replace(decision, relays=nowhere)))
    assert world.complete() == []


def test_a_forged_deed_is_refused_by_name() -> None:
    class Usurping(Twist):
        """Tells everybody below a deed of its own with each fragment."""

        def sends(self, send: AnySend) -> list[AnySend]:
            if not isinstance(send.message, Data):
                return [send]
            forged = replace(world.deed, version=9, host=AuthorId(b"\7" * 32))
            return [Send(send.peer, DeedIs(forged)), send]

    world = MaliciousWorld(5, 1, {"guest0": Usurping()}, config=PlacesConfig(fanout=2))
    play(world, 5, 60.0)
    assert world.complete() == []
    assert world.liars_named(Reason.BAD_SIGNATURE) == {"guest0"}
    assert {world.status(name).deed.version for name in world.honest} == {1}


ATTACKS: list[Callable[[], Twist]] = [
    lambda: Altering(Data, lambda data: replace(data, unit=flipped(data.unit))),
    Withholding,
    Reordering,
    ReplayServer,
    lambda: Altering(StateIs, lambda page: replace(page, data=page.data[:-1] + b"!") if page.data else page),
    lambda: Altering(RollIs, lambda page: replace(page, lines=page.lines[57:], size=max(0, page.size - 57))),
    lambda: Altering(Decision, lambda decision: replace(decision, next=10**9)),
    lambda: Altering(Decision, turned_away),
]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3] if SOAK else [0.2])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_mix_of_malicious_relays_among_many_guests_keeps_nobody_from_anything(
    seed: int, share: float
) -> None:
    luck = Random(seed)
    guests = [f"guest{number}" for number in range(50 if SOAK else 24)]
    liars = luck.sample(guests, round(share * len(guests)))
    others = luck.sample(ATTACKS[1:], len(ATTACKS) - 1)
    # One after the other and not by luck alone: false words are in every mix.
    twists = {name: attack() for name, attack in zip(liars, cycle((ATTACKS[0], *others)), strict=False)}
    world = MaliciousWorld(len(guests), seed, twists, config=PlacesConfig(fanout=4))
    play(world, 10, 150.0)
    assert world.complete() == []
    assert all(len(world.status(name).upstreams) <= 4 for name in world.honest)
