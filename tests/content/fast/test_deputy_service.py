"""Members that a node serves for a publisher: only those, only so many, and no further."""

from __future__ import annotations

from tests.content.audience import Audience
from tests.content.fast_node import (
    HINTS,
    FastNode,
    LonePublisher,
    complaints,
    receipt_key,
    sent,
)

from linnet.content.commands import GroupAt
from linnet.content.config import FastConfig
from linnet.content.fast.commands import JoinGroups, PublishToGroup
from linnet.content.fast.fast_delivery import ReceiptsDue
from linnet.content.fast.group_requests import AnswerDue
from linnet.content.fast.messages import (
    Convey,
    Conveyed,
    Enrol,
    Enrolled,
    Enrolment,
    Entrust,
    Entrusted,
    Quit,
)
from linnet.content.fast.signed_records import make_enrolment, receipt
from linnet.core.effects import SetTimer
from linnet.core.ids import Contact, TopicId
from linnet.core.reasons import Reason
from linnet.event.signing import unit_head
from linnet.testing.identities import known_identity
from linnet.testing.lone_part import Said
from linnet.trace.records import Kind, Record


class Deputy(FastNode):
    """A member of the publisher's group, which said that it could serve two."""

    def __init__(self, config: FastConfig | None = None) -> None:
        super().__init__("deputy", config)
        self.publisher = LonePublisher()
        self.up("publisher")
        via = GroupAt(Contact(self.publisher.peer, HINTS), "stock")
        (enrol,) = sent(self.ask(JoinGroups(1, "stock", via, capacity=2)), "publisher", Enrol)
        self.publisher.hear("deputy", enrol)
        self.hear("publisher", Enrolled(enrol.number, None))
        for name in ("x", "y", "z"):
            self.up(name)

    def enrolment(self, name: str, predicate: str = "stock", hints: tuple[str, ...] = HINTS) -> Enrolment:
        key = known_identity(name).device
        until = int(self.now + 1000)
        return make_enrolment(key, self.publisher.group, hints, (predicate,), "here", 0, until)

    def entrust(self, *added: Enrolment, gone: tuple[str, ...] = ()) -> Reason | None:
        peers = tuple(known_identity(name).peer for name in gone)
        effects = self.hear("publisher", Entrust(9, self.publisher.group, added, peers))
        (answer,) = sent(effects, "publisher", Entrusted)
        return answer.reason

    def event(self, attributes: str = "stock", *, serve: bool = True) -> Convey:
        (convey,) = sent(self.publisher.ask(PublishToGroup("stock", attributes, b"one")), "deputy", Convey)
        return Convey(convey.number, convey.unit, convey.card, serve, 10_000)

    def answered(self, convey: Convey, name: str) -> Said:
        event = unit_head(convey.unit)
        given = receipt(receipt_key(name), event)
        return self.hear(name, Conveyed(convey.number, event, given, True, False, (), None))


def final(effects: Said) -> list[tuple[bool, int]]:
    return [(each.waiting, len(each.receipts)) for each in sent(effects, "publisher", Conveyed)]


def test_an_event_goes_to_those_who_want_it_and_their_receipts_go_back() -> None:
    node = Deputy()
    assert node.entrust(node.enrolment("x"), node.enrolment("y", "apple/stock")) is None
    event = node.event("apple/stock")
    effects = node.hear("publisher", event)
    assert final(effects) == [(True, 0)]
    (to_x,), (to_y,) = sent(effects, "x", Convey), sent(effects, "y", Convey)
    assert (to_x.unit, to_x.serve, to_y.serve) == (event.unit, False, False)
    assert final(node.answered(to_x, "x")) == []
    assert final(node.answered(to_y, "y")) == [(False, 2)]
    plain = node.hear("publisher", node.event())
    assert (len(sent(plain, "x", Convey)), sent(plain, "y", Convey)) == (1, [])


def test_an_event_is_passed_on_once_and_what_is_known_is_said_again() -> None:
    node = Deputy()
    node.entrust(node.enrolment("x"))
    event = node.event()
    (to_x,) = sent(node.hear("publisher", event), "x", Convey)
    again = node.hear("publisher", event)
    assert (final(again), sent(again, "x", Convey)) == ([(True, 0)], [])
    node.answered(to_x, "x")
    assert final(node.hear("publisher", event)) == [(False, 1)]


def test_nothing_is_passed_on_that_does_not_come_from_the_publisher_or_is_not_meant_for_others() -> None:
    node = Deputy()
    node.entrust(node.enrolment("x"))
    second_hand = node.hear("y", node.event())
    assert sent(second_hand, "x", Convey) == []
    assert [each.reason for each in sent(second_hand, "y", Conveyed)] == [None], "but it is taken"
    assert sent(node.hear("publisher", node.event(serve=False)), "x", Convey) == []


def test_who_does_not_answer_in_time_is_left_to_the_publisher() -> None:
    node = Deputy()
    node.entrust(node.enrolment("x"), node.enrolment("y"))
    effects = node.hear("publisher", node.event())
    (to_x,), (to_y,) = sent(effects, "x", Convey), sent(effects, "y", Convey)
    node.answered(to_x, "x")
    (timer,) = [
        each for each in effects if isinstance(each, SetTimer) and isinstance(each.timer, ReceiptsDue)
    ]
    assert timer.delay == 10.0
    late = node.fire(timer.timer)
    assert final(late) == [(False, 1)]
    assert complaints(late) == [(known_identity("y").peer, Reason.TIMEOUT)]
    assert node.fire(AnswerDue(to_y.number)) == [], "it is not asked again"


def test_an_answer_about_an_event_that_was_forgotten_meanwhile_changes_nothing() -> None:
    node = Deputy(FastConfig(publications=1, tries=1))
    node.entrust(node.enrolment("x"), node.enrolment("y"))
    effects = node.hear("publisher", node.event())
    (first,), (silent,) = sent(effects, "x", Convey), sent(effects, "y", Convey)
    effects = node.hear("publisher", node.event())
    assert [each.reason for each in effects if isinstance(each, Record) and each.kind is Kind.EVICTED] == [
        Reason.TOO_MANY
    ]
    assert final(node.answered(first, "x")) == []
    assert final(node.fire(AnswerDue(silent.number))) == [], "nor that there is none"
    (second,), (other,) = sent(effects, "x", Convey), sent(effects, "y", Convey)
    assert final(node.answered(second, "x")) == []
    assert final(node.answered(second, "x")) == []
    assert final(node.answered(other, "y")) == [(False, 2)]


def test_one_whose_membership_was_not_renewed_is_served_no_more() -> None:
    node = Deputy()
    node.entrust(node.enrolment("x"))
    node.now += 500
    node.entrust(node.enrolment("y"))
    node.now += 501
    effects = node.hear("publisher", node.event())
    assert sent(effects, "x", Convey) == []
    (to_y,) = sent(effects, "y", Convey)
    assert final(node.answered(to_y, "y")) == [(False, 1)]


def test_who_says_that_it_is_no_member_gives_no_receipt() -> None:
    node = Deputy()
    node.entrust(node.enrolment("x"))
    (to_x,) = sent(node.hear("publisher", node.event()), "x", Convey)
    nothing = Conveyed(to_x.number, unit_head(to_x.unit), None, False, False, (), Reason.NOT_A_MEMBER)
    assert final(node.hear("x", nothing)) == [(False, 0)]


def test_more_than_was_promised_is_refused_and_changes_nothing() -> None:
    node = Deputy()
    three = [node.enrolment(name) for name in ("x", "y", "z")]
    assert node.entrust(*three) is Reason.TOO_MANY
    assert node.entrust(*three[:2]) is None
    assert node.entrust(three[2]) is Reason.TOO_MANY
    assert node.entrust(three[2], gone=("x",)) is None
    effects = node.hear("publisher", node.event())
    assert [len(sent(effects, name, Convey)) for name in ("x", "y", "z")] == [0, 1, 1]
    assert node.entrust(three[2]) is None, "one who stays for longer"


def test_only_the_publisher_entrusts_and_only_those_who_enrolled() -> None:
    node = Deputy()
    stranger = node.hear("x", Entrust(1, node.publisher.group, (node.enrolment("y"),), ()))
    assert [each.reason for each in sent(stranger, "x", Entrusted)] == [Reason.NOT_A_MEMBER]
    said = node.enrolment("x")
    victim = Enrolment(
        said.group,
        Contact(said.member.peer, ("tls://victim:1",)),
        said.predicates,
        said.region,
        said.capacity,
        said.until,
        said.sig,
    )
    assert node.entrust(victim) is Reason.BAD_SIGNATURE
    elsewhere = make_enrolment(
        known_identity("x").device,
        TopicId(b"g" * 32),
        HINTS,
        ("stock",),
        "here",
        0,
        said.until,
    )
    assert node.entrust(elsewhere) is Reason.NOT_A_MEMBER
    assert node.entrust(node.enrolment("x", hints=())) is Reason.NO_ADDRESS


def test_with_the_group_the_charge_ends() -> None:
    node = Deputy()
    node.entrust(node.enrolment("x"))
    assert node.machine.is_settled
    node.hear("publisher", Quit(3, node.publisher.group))
    refused = sent(node.hear("publisher", node.event()), "publisher", Conveyed)
    assert [each.reason for each in refused] == [Reason.NOT_A_MEMBER]


def test_a_member_whose_link_breaks_is_tried_until_time_is_up() -> None:
    node = Deputy()
    node.entrust(node.enrolment("x"))
    effects = node.hear("publisher", node.event())
    assert final(node.down("x")) == []
    calls = [
        each.timer for each in effects if isinstance(each, SetTimer) and isinstance(each.timer, AnswerDue)
    ]
    ended: Said = []
    for _ in range(node.config.tries):
        ended += node.fire(calls[0])
    assert final(ended) == [(False, 0)]


def test_in_a_network_nobody_gets_an_event_twice_or_over_more_than_two_links() -> None:
    world = Audience(20, config=FastConfig(capacity=1000))
    for place, name in enumerate(world.names[1:19]):
        world.join(name, capacity=4 if place % 3 == 0 else 0, region="one" if place < 12 else "two")
    assert sum(world.deputies().values()) >= 8
    assert all(served <= 4 for served in world.deputies().values())
    said = world.say(b"one")
    assert (said.wanted, said.reached, said.taken_back) == (18, 18, 0)
    assert [world.bodies(name) for name in world.names[1:19]] == [[b"one"]] * 18
    assert {hops for name in world.names[1:19] for hops in world.hops(name)} == {1, 2}


def test_whom_nobody_can_dial_is_served_by_the_publisher_itself() -> None:
    hidden = ("node8", "node9")
    world = Audience(10, unreachable=hidden)
    for place, name in enumerate(world.names[1:]):
        world.join(name, capacity=10 if place == 0 else 0)
    world.run(120.0)
    said = world.say(b"one")
    assert (said.wanted, said.reached, said.taken_back) == (9, 9, 0)
    assert [world.hops(name) for name in hidden] == [[1], [1]]
