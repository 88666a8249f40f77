"""Groups in a network of real nodes: found, joined, served in two hops at most."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.content.audience import Audience
from tests.content.fast_node import FastNode, LonePublisher, complaints, replies, sent

from linnet.content.attribute_keys import attribute_key
from linnet.content.commands import Ended, GroupAt
from linnet.content.config import FastConfig
from linnet.content.fast.commands import (
    CloseGroup,
    GroupOpened,
    GroupOutcome,
    GroupsFound,
    GroupsJoined,
    JoinGroups,
    OpenGroup,
    PublishToGroup,
    SearchGroups,
)
from linnet.content.fast.messages import (
    Browse,
    Browsed,
    Convey,
    Conveyed,
    Enrol,
    Enrolled,
    Enrolment,
    Entrust,
    Entrusted,
    FastMessage,
    Parted,
    Post,
    Posted,
    Quit,
)
from linnet.content.fast.signed_records import group_id, make_enrolment
from linnet.core.effects import Deliver, Send
from linnet.core.ids import Contact, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.peer.interface import AnyCommand
from linnet.sim.clock import START
from linnet.sim.content.scenario import ContentScenario, Variant, run_content
from linnet.testing.identities import known_identity


def test_a_group_that_is_advertised_is_found_joined_and_heard() -> None:
    world = Audience(20, "stock/price[0,100]", listed=True)
    reader, other = world.names[5], world.names[6]
    found = world.asked(reader, SearchGroups("price[10,20]/stock"))
    assert isinstance(found, GroupsFound)
    assert [(each.predicate, each.publisher.peer) for each in found.groups] == [
        ("price[0,100]/stock", world.peers[world.publisher])
    ]
    assert found.groups[0].author == world.identities[world.publisher].card.person
    joined = world.asked(reader, JoinGroups(1, "stock/price[10,20]"))
    assert joined == GroupsJoined("price[10,20]/stock", found.groups, ())
    world.asked(other, JoinGroups(2, "stock/price[50,60]"))
    said = world.say(b"one", "stock/price=15")
    assert (said.wanted, said.reached, said.missed) == (1, 1, ())
    assert (world.bodies(reader), world.hops(reader), world.bodies(other)) == ([b"one"], [1], [])


def test_a_search_finds_only_groups_that_carry_all_of_it() -> None:
    world = Audience(20, "stock/price[0,100]", listed=True)
    for wanted in ("stock/price[50,200]", "stock/apple", "bonds"):
        found = world.asked(world.names[3], SearchGroups(wanted))
        assert found == GroupsFound((), 0)


def test_a_group_that_is_not_advertised_is_joined_by_whoever_knows_it() -> None:
    world = Audience(12)
    assert world.asked(world.names[4], SearchGroups("stock")) == GroupsFound((), 0)
    world.join(world.names[4])
    assert world.say(b"one").reached == 1
    assert world.bodies(world.names[4]) == [b"one"]


def test_a_group_of_topics_looks_at_the_event() -> None:
    """The published program sends everything to everyone in such a group."""
    world = Audience(8)
    one, another = world.names[3], world.names[4]
    world.join(one, "stock/apple")
    world.join(another, "stock/pear")
    assert world.say(b"apples", "stock/apple").reached == 1
    assert (world.bodies(one), world.bodies(another)) == ([b"apples"], [])


def test_a_publisher_may_be_a_member_of_its_own_group_and_hears_itself_once() -> None:
    world = Audience(8)
    world.join(world.publisher)
    world.join(world.publisher, "stock/apple")
    assert world.say(b"one", "stock/apple").wanted == 0
    assert world.bodies(world.publisher) == [b"one", b"one"], "one for each subscription"
    assert world.hops(world.publisher) == [0, 0]


def test_what_cannot_be_asked_is_declined_with_a_reason() -> None:
    world = Audience(8, config=FastConfig(groups=2))
    name = world.publisher
    declined: list[tuple[AnyCommand, Reason]] = [
        (OpenGroup("stock"), Reason.IN_USE),
        (OpenGroup("stock["), Reason.MALFORMED),
        (PublishToGroup("stock", "bonds", b""), Reason.NOT_ALLOWED),
        (PublishToGroup("bonds", "bonds", b""), Reason.UNKNOWN),
        (PublishToGroup("stock", "stock", bytes(300_000)), Reason.TOO_LARGE),
        (CloseGroup("bonds"), Reason.UNKNOWN),
        (JoinGroups(1, "stock", region="x" * 65), Reason.TOO_LARGE),
    ]
    for command, reason in declined:
        answer = world.asked(name, command)
        assert isinstance(answer, Declined), command
        assert answer.reason is reason
    assert isinstance(world.asked(name, OpenGroup("bonds")), GroupOpened)
    full = world.asked(name, OpenGroup("gold"))
    assert isinstance(full, Declined)
    assert full.reason is Reason.TOO_MANY
    assert world.asked(name, CloseGroup("bonds")) == Ended()


def test_in_simulation_nothing_is_missing_over_two_hops_at_most() -> None:
    report = run_content(ContentScenario(nodes=30, variant=Variant.FAST))
    assert (report.missing, report.false_positives, report.unsettled, report.max_hops) == (0, 0, 0, 2)
    assert report.duplicates_share == 0.0


# One machine, by hand: what peers must not send.

GROUP = group_id(known_identity("publisher").peer, "stock")
STRANGE = TopicId(b"s" * 32)


def enrolment(name: str, group: TopicId = GROUP, text: str = "stock", until: int = 10_000) -> Enrolment:
    key = known_identity(name).device
    return make_enrolment(key, group, (), (text,), "here", 0, int(START) + until)


def posted(publisher: str, attribute: str = "stock", **changes: object) -> Post:
    node = FastNode(publisher)
    for name in "ab":
        node.up(name)
    node.ask(OpenGroup("stock"))
    contacts = (Contact(known_identity("a").peer), Contact(known_identity("b").peer))
    effects = node.find(attribute_key("stock"), *contacts)
    (post, *_) = [*sent(effects, "a", Post), *sent(effects, "b", Post)]
    return Post(1, attribute, structs.replace(post.posting, **changes))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Enrol(1, "gold", enrolment("a"), bytes(32)), Reason.UNKNOWN),
        (Enrol(1, "stock/", enrolment("a"), bytes(32)), Reason.MALFORMED),
        (Enrol(1, "stock", enrolment("a", STRANGE), bytes(32)), Reason.UNKNOWN),
        (Enrol(1, "stock", enrolment("b"), bytes(32)), Reason.NOT_ALLOWED),
        (Enrol(1, "stock", enrolment("a", text="stock/apple"), bytes(32)), Reason.MALFORMED),
        (Enrol(1, "stock", enrolment("a", until=-1000), bytes(32)), Reason.STALE),
        (Enrol(1, "stock", structs.replace(enrolment("a"), capacity=9), bytes(32)), Reason.BAD_SIGNATURE),
        (posted("c", open=False), Reason.BAD_SIGNATURE),
        (posted("c", attribute="gold"), Reason.MALFORMED),
        (posted("c", expires=1), Reason.STALE),
        (Browse(1, "stock", "stock/", b""), Reason.MALFORMED),
        (Entrust(1, GROUP, (enrolment("b"),), ()), Reason.NOT_A_MEMBER),
        (Quit(1, GROUP), Reason.STALE),
        (Enrolled(5, None), Reason.STALE),
        (Entrusted(5, None), Reason.STALE),
        (Posted(5, None), Reason.STALE),
        (Browsed(5, (), False, None), Reason.STALE),
        (Parted(5), Reason.STALE),
        (Conveyed(5, EventId(bytes(32)), None, True, False, (), None), Reason.STALE),
        (Conveyed(5, EventId(bytes(32)), None, True, True, (), None), Reason.STALE),
    ],
)
def test_what_peers_must_not_send_is_named_and_changes_nothing(message: FastMessage, reason: Reason) -> None:
    node = LonePublisher()
    before = node.machine.publisher.status()
    effects = node.hear("a", message)
    assert complaints(effects) == [(known_identity("a").peer, reason)]
    answers = [each.message for each in effects if isinstance(each, Send)]
    assert all(getattr(answer, "reason", reason) is reason for answer in answers)
    assert node.machine.publisher.status() == before
    assert node.machine.is_settled


def test_an_answer_of_another_kind_ends_the_question_with_a_reason() -> None:
    node = LonePublisher()
    node.enrol("a")
    (convey,) = sent(node.ask(PublishToGroup("stock", "stock", b"")), "a", Convey)
    effects = node.hear("a", Parted(convey.number))
    assert (None, Reason.PROTOCOL_ERROR) in complaints(effects)
    (found,) = replies(effects)
    assert isinstance(found, GroupOutcome)
    assert found.missed == (known_identity("a").peer,)


class Reader(FastNode):
    """A member of the publisher's group."""

    def __init__(self) -> None:
        super().__init__("a")
        self.publisher = LonePublisher()
        self.up("publisher")
        via = GroupAt(Contact(self.publisher.peer), "stock")
        (enrol,) = sent(self.ask(JoinGroups(1, "stock", via)), "publisher", Enrol)
        self.publisher.hear("a", enrol)
        self.hear("publisher", Enrolled(enrol.number, None))
        (self.convey,) = sent(self.publisher.ask(PublishToGroup("stock", "stock", b"one")), "a", Convey)

    def answer(self, name: str, convey: Convey) -> tuple[Reason | None, int]:
        """What is answered, and how often something is handed over."""
        effects = self.hear(name, convey)
        (answer,) = sent(effects, name, Conveyed)
        return answer.reason, sum(isinstance(each, Deliver) for each in effects)


def test_an_event_is_taken_from_whoever_brings_it_but_only_if_the_publisher_signed_it() -> None:
    node = Reader()
    convey = node.convey
    forged = structs.replace(convey, unit=structs.replace(convey.unit, sig=bytes(64)))
    assert node.answer("publisher", forged) == (Reason.BAD_SIGNATURE, 0)
    elsewhere = structs.replace(convey, unit=structs.replace(convey.unit, topic=STRANGE))
    assert node.answer("publisher", elsewhere) == (Reason.NOT_A_MEMBER, 0)
    other = LonePublisher()
    other_card = structs.replace(convey, card=known_identity("b").card)
    assert node.answer("b", other_card) == (Reason.NOT_A_PUBLISHER, 0)
    assert other.machine.is_settled
    assert node.answer("b", convey) == (None, 1)
    assert node.answer("publisher", convey) == (None, 0), "once"


def test_an_event_of_long_ago_is_not_taken() -> None:
    node = Reader()
    node.now += 3601.0
    assert node.answer("publisher", node.convey) == (Reason.STALE, 0)
