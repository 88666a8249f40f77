"""Asking a relay to serve a room, and the events that name it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.driven import Driven
from tests.rooms.bench import Bench

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.identity.cards import check_card
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import SetRule
from linnet.rooms.event_positions import Draft
from linnet.rooms.event_types import MEMBER, RELAY, JoinRule, Member, Membership, Relay, body_of, member_key
from linnet.rooms.messages import RelayAnswer, RelayAsk
from linnet.rooms.relay_client.roster import RelayAnswerDue, RelayQuestion, RelayRepeatDue


class Scene:
    """Ann asks rex."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.rex = self.bench.who("rex")
        self.contact = Contact(self.rex.peer, ("tls://rex:1",))
        self.greet = self.bench.room.handshake.greeting(answer=True)
        others = tuple(Contact(self.bench.link(f"peer {number}"), ()) for number in range(70))
        self.adding = Driven(lambda out: RelayQuestion(5, self.contact, self.greet, others, out))
        self.purpose = f"adding relay {self.bench.id.hex()[:16]}"
        self.others = others

    def tick(self, what: str) -> Timer:
        kind = RelayAnswerDue if what == "patience" else RelayRepeatDue
        return kind(self.bench.id, self.rex.peer)

    def answer(self) -> RelayAnswer:
        return RelayAnswer(self.bench.id, 5, None, self.rex.author, self.rex.card)


def test_it_is_dialled_greeted_and_asked_and_asked_again() -> None:
    scene = Scene()
    peer = scene.rex.peer
    held = [Hold(peer, ("tls://rex:1",), scene.purpose), SetTimer(9.0, scene.tick("patience"))]
    asked = [
        Send(peer, scene.greet),
        Send(peer, RelayAsk(scene.bench.id, 5, scene.others[:64])),
        SetTimer(2.0, scene.tick("again")),
    ]
    assert scene.adding.begin({}, 9.0) == held
    assert scene.adding.begin({peer: None}, 9.0) == [*held, *asked]
    assert scene.adding.ask_again({peer: None}) == asked
    assert scene.adding.ask_again({}) == []
    assert scene.adding.end() == [
        CancelTimer(scene.tick("patience")),
        CancelTimer(scene.tick("again")),
        Release(peer, scene.purpose),
    ]


def test_two_rooms_that_ask_the_same_relay_do_not_let_go_of_each_others_link() -> None:
    one = Scene()
    greet = replace(one.greet, room=TopicId(b"o" * 32))
    another = Driven(lambda out: RelayQuestion(5, one.contact, greet, (), out))
    assert one.adding.begin({}, 1.0)[0] != another.begin({}, 1.0)[0]


def test_it_is_invited_and_named_unless_it_is_there_or_anyone_may_come() -> None:
    scene = Scene()
    key = to_text(Sort.DEVICE, scene.rex.peer)
    named = Draft(RELAY, key, body_of(Relay(True, scene.rex.author, ("tls://rex:1",))))
    invited = Draft(MEMBER, member_key(scene.rex.author), body_of(Member(Membership.INVITE)))
    assert scene.adding.draft_events(scene.answer(), scene.bench.room.view) == [invited, named]
    scene.bench.say(SetRule(scene.bench.id, JoinRule.PUBLIC))
    assert scene.adding.draft_events(scene.answer(), scene.bench.room.view) == [named]
    scene.bench.say(SetRule(scene.bench.id, JoinRule.INVITE))
    scene.bench.join("rex")
    assert scene.adding.draft_events(scene.answer(), scene.bench.room.view) == [named]


def test_its_card_says_whose_it_is() -> None:
    scene = Scene()
    scene.adding.check(scene.answer(), check_card)
    bob = scene.bench.who("bob")
    for lie in (
        RelayAnswer(scene.bench.id, 5, None, bob.author, scene.rex.card),
        RelayAnswer(scene.bench.id, 5, None, bob.author, bob.card),
        RelayAnswer(scene.bench.id, 5, None, scene.rex.author),
    ):
        with pytest.raises(RemoteError) as error:
            scene.adding.check(lie, check_card)
        assert error.value.reason is Reason.UNKNOWN_DEVICE
