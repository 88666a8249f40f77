"""A node of an encrypted room fails at any of its commits: no key is used twice, nobody falls out of step.

What is about to be written and is not, and what is written and then not performed, are tried at every commit:
the state of the keys is in the commit of the event that caused it (docs/adr/0014-encrypted-groups.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

import pytest
from tests.rooms.test_crashes import PowerCut, Script

from linnet.core.inputs import Received
from linnet.delivery.messages import Data
from linnet.event.event import MESSAGE, Event, Unverified
from linnet.event.signing import decode_unit, recall_unit
from linnet.groups import agreement
from linnet.groups.bodies import Keys, decode_body
from linnet.groups.message_crypto import Envelope, read_clear
from linnet.groups.state import GroupState
from linnet.peer.interface import Effect, Input
from linnet.peer.peer import Peer
from linnet.rooms.commands import SendToRoom, SetMembership
from linnet.rooms.encryption.group_state import Text
from linnet.rooms.event_types import GROUP, Membership, Newcomers

STEP = 1 if os.environ.get("LINNET_SOAK") else 9


class Listening(Peer):
    """The shipped machine, with an ear at what comes in."""

    heard: list[Unverified]

    def handle(self, event: Input, now: float) -> list[Effect]:
        if isinstance(event, Received) and isinstance(event.message, Data):
            self.heard.append(event.message.unit)
        return super().handle(event, now)


class OutgoingMessage(Script):
    """Three people in an encrypted room, and a relay; one of them fails while keys are changed and used."""

    kind = Listening

    def __init__(self) -> None:
        self.overheard: list[Unverified] = []
        super().__init__()

    def _machine(self, name: str) -> Peer:
        machine = super()._machine(name)
        assert isinstance(machine, Listening)
        machine.heard = self.overheard
        return machine

    def play(self) -> None:
        """Words while keys change: a removal, two updates at once, an addition."""
        self.tell("bob", SendToRoom(self.room, (b"one", b"two")))
        self.tell("ann", SendToRoom(self.room, (b"three",)))
        self.run(0.5)
        self.tell("ann", SetMembership(self.room, self.person("cid"), Membership.BAN))
        self.tell("bob", SendToRoom(self.room, (b"four",)))
        self.run(2.0)
        for name in ("ann", "bob"):
            self.update(name)
        self.run(0.02)
        self.tell("bob", SendToRoom(self.room, (b"five",)))
        self.tell("ann", SendToRoom(self.room, (b"six", b"seven")))
        self.run(1.0)
        self.tell("ann", SetMembership(self.room, self.person("cid"), Membership.LEAVE))
        self.run(1.5)

    def update(self, name: str) -> None:
        if not self.network.is_up(self.peer(name)) or not self.group(name).can_speak:
            return
        try:
            self.update_keys(name)
        except PowerCut:
            self.network.crash(self.peer(name))

    def state_of(self, name: str) -> GroupState:
        return self.group(name).state(self.network.now)

    def events(self) -> Iterator[Event]:
        """All that ever left a node, and all that is kept."""
        for unit in self.overheard:
            if unit.topic == self.room:
                yield recall_unit(unit).events[0]
        for name in self.stores:
            for _, entry in self.stores[name].log.read(self.room, 0, 1_000_000):
                yield recall_unit(decode_unit(entry.raw)).events[0]


def script() -> OutgoingMessage:
    play = OutgoingMessage()
    play.found("ann", "bob", "cid", "r0", newcomers=Newcomers.FROM_NOW)
    play.run(10.0)
    return play


@cache
def commits_of(name: str) -> int:
    play = script()
    before = play.fragile(name).commits
    play.play()
    return play.fragile(name).commits - before


def check_keys(play: OutgoingMessage) -> None:
    """No place in a chain of keys, and no number of an operation, was used for two things."""
    places: dict[tuple[bytes, int, int], bytes] = {}
    numbers: dict[tuple[bytes, int], bytes] = {}
    for event in play.events():
        if event.kind == GROUP:
            content = decode_body(event.body)
            if not isinstance(content, Keys):
                place = (content.head.sender, content.head.cseq)
                assert numbers.setdefault(place, event.body) == event.body, "two operations of one number"
        elif event.kind == MESSAGE:
            clear = read_clear(event.tail.clear or b"")
            assert places.setdefault(clear, event.body) == event.body, "two messages under one key"
    assert len(numbers) > 6
    assert len(places) > 3


def check_agreement(play: OutgoingMessage) -> None:
    """ann and bob agree on the group, follow each other, and have read all that was said."""
    states = [play.state_of(name) for name in ("ann", "bob")]
    members = [agreement.members(state) for state in states]
    assert members[0] == members[1]
    view = play.room_at("ann").control.view()
    assert {each.author for each in members[0].values()} == {
        person for person in view.joined() if not view.is_relay_person(person)
    }
    for member in members[0]:
        assert states[0].ratchets[member] == states[1].ratchets[member]
    for state in states:
        assert not agreement.is_desynced(state)
        assert not agreement.needs_heal(state)
        assert agreement.pending_by_member(state) == {}
    said = {event.id: event for event in play.events() if event.kind == MESSAGE}
    for name in ("ann", "bob"):
        known = play.room_at(name).dag.ids_in_order()
        for id in known:
            if id in said:
                assert isinstance(play.group(name).messages.text(id), Text), f"{name} cannot read one"
    assert b"last" in [item.body for item in play.items["bob"] if isinstance(item, Event)]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[bytes, bytes], bytes]:
    """All that was ever sealed, also what never left, by key and nonce."""
    sealed: dict[tuple[bytes, bytes], bytes] = {}
    seal = Envelope.seal

    def noting(self: Envelope, plaintext: bytes, bound: bytes) -> bytes:
        made = seal(self, plaintext, bound)
        place = (self.key, self.clear[-4:])
        assert sealed.setdefault(place, made) == made, "one key and nonce for two messages"
        return made

    monkeypatch.setattr(Envelope, "seal", noting)
    return sealed


@pytest.mark.parametrize("keeps", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("broken", ["ann", "bob"])
def test_a_node_may_fail_at_any_commit(
    broken: str, keeps: bool, drawn: dict[tuple[bytes, bytes], bytes]
) -> None:
    commits = commits_of(broken)
    assert commits > 20
    for commit in range(1 + keeps, commits + 1, STEP):
        drawn.clear()
        play = script()
        play.break_at(broken, commit, keeps)
        play.play()
        play.finish(broken)
        check_keys(play)
        check_agreement(play)
        assert len(drawn) >= 4
