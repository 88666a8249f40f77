"""Joining, renewing and leaving groups, and what is promised."""

from __future__ import annotations

from tests.content.audience import Audience
from tests.content.fast_node import FastNode, replies, sent

from linnet.content.commands import Ended, GroupAt
from linnet.content.config import FastConfig
from linnet.content.fast.commands import (
    CloseGroup,
    GroupOpened,
    GroupsJoined,
    JoinGroups,
    LeaveGroups,
    NotJoined,
    OpenGroup,
)
from linnet.content.fast.messages import Enrol, Enrolled
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.sim.content.world import HINTS
from linnet.testing.identities import known_identity


def joined(world: Audience, count: int, strong: tuple[int, ...]) -> dict[str, int]:
    """So many join, of which some could serve ten; their subscriptions."""
    names = world.names[1 : count + 1]
    return {name: world.join(name, capacity=10 if place in strong else 0) for place, name in enumerate(names)}


def test_each_who_leaves_is_not_served_any_more_and_all_others_are() -> None:
    """One whom the publisher serves, one whom another member serves, and that member itself."""
    world = Audience(12)
    numbers = joined(world, 9, strong=(0, 1))
    deputy = next(iter(world.deputies()))
    world.say(b"first")
    direct = next(name for name in numbers if name != deputy and world.hops(name) == [1])
    served = next(name for name in numbers if world.hops(name) == [2])
    left = dict(numbers)
    for turn, name in enumerate((direct, served, deputy)):
        world.leave(name, left.pop(name))
        world.run(5.0)
        said = world.say(f"turn {turn}".encode())
        assert (said.wanted, said.reached, said.taken_back) == (len(left), len(left), 0)
    assert world.bodies(direct) == [b"first"]
    assert world.bodies(served) == [b"first", b"turn 0"]
    everything = [b"first", b"turn 0", b"turn 1", b"turn 2"]
    assert [world.bodies(name) for name in left] == [everything] * len(left)
    assert deputy not in world.deputies()


def test_one_that_wants_several_things_of_a_group_is_one_member_and_gets_an_event_once() -> None:
    world = Audience(4)
    name = world.names[1]
    apples, prices = world.join(name, "stock/apple"), world.join(name, "stock/price[0,10]")
    assert world.standing.members == 1
    assert world.say(b"one", "stock/apple/price=5").wanted == 1
    assert world.bodies(name) == [b"one", b"one"], "for each of its subscriptions"
    world.leave(name, apples)
    assert world.say(b"two", "stock/apple").wanted == 0
    assert world.say(b"three", "stock/price=5").wanted == 1
    world.leave(name, prices)
    assert world.standing.members == 0
    assert world.bodies(name)[2:] == [b"three"]


def test_one_that_wants_more_of_a_group_gets_that_as_well() -> None:
    world = Audience(4)
    name = world.names[1]
    world.join(name, "stock/apple")
    assert world.say(b"one", "stock/price=5").wanted == 0
    world.join(name, "stock/price[0,10]")
    assert world.say(b"two", "stock/price=5").wanted == 1
    world.join(name, "stock/price[2,3]")
    assert world.say(b"three", "stock/pear/price=2").wanted == 1
    assert world.bodies(name) == [b"two", b"three", b"three"]


def test_memberships_are_renewed_and_end_without_that() -> None:
    world = Audience(12, config=FastConfig(refresh=20.0, capacity=1000))
    names = list(joined(world, 8, strong=(0,)))
    crashed = names[-1]
    world.run(100.0)
    said = world.say(b"one")
    assert (said.wanted, said.reached) == (8, 8), "also those whom another serves"
    assert said.taken_back == 0
    world.crash(crashed)
    world.run(100.0)
    assert world.standing.members == 7
    assert world.say(b"two").missed == ()


def test_a_group_that_is_closed_is_over_for_its_members() -> None:
    world = Audience(10, listed=True)
    joined(world, 7, strong=(0,))
    assert world.asked(world.publisher, CloseGroup("stock")) == Ended()
    assert [world.status(name).memberships for name in world.names[1:8]] == [()] * 7
    # Also on the boards.
    answer = world.asked(world.names[9], JoinGroups(99, "stock"))
    assert answer == GroupsJoined("stock", (), ())


def test_half_of_what_is_left_is_promised_to_each_group_and_is_free_again_afterwards() -> None:
    """The published program halves a node's capacity with each membership and never gives it back."""
    world = Audience(6, config=FastConfig(capacity=10))
    name = world.names[1]
    for other in (world.names[2], world.names[3]):
        assert isinstance(world.asked(other, OpenGroup("stock", listed=False)), GroupOpened)
    numbers = []
    for number, publisher in enumerate(world.names[i] for i in (0, 2, 3)):
        via = GroupAt(Contact(world.peers[publisher], HINTS), "stock")
        world.asked(name, JoinGroups(number, "stock", via))
        numbers.append(number)
    assert [each.promised for each in world.status(name).memberships] == [5, 2, 1]
    world.asked(name, LeaveGroups(0))
    via = GroupAt(Contact(world.peers[world.publisher], HINTS), "stock")
    world.asked(name, JoinGroups(7, "stock", via, capacity=100))
    assert [each.promised for each in world.status(name).memberships] == [2, 1, 7], "not more than there is"


def test_a_group_that_is_not_there_and_a_publisher_that_is_gone_are_told() -> None:
    world = Audience(5)
    gone = world.names[3]
    world.crash(gone)
    for number, (publisher, reason) in enumerate(
        ((world.publisher, Reason.UNKNOWN), (gone, Reason.UNREACHABLE))
    ):
        via = GroupAt(Contact(world.peers[publisher], HINTS), "gold")
        answer = world.asked(world.names[1], JoinGroups(number, "gold", via), 80.0)
        assert isinstance(answer, GroupsJoined)
        assert [(each.listing.publisher.peer, each.reason) for each in answer.refused] == [
            (world.peers[publisher], reason)
        ]
        assert isinstance(answer.refused[0], NotJoined)


def test_memberships_and_subscriptions_are_bounded() -> None:
    world = Audience(5, config=FastConfig(memberships=1, subscriptions=2))
    name = world.names[1]
    world.join(name)
    via = GroupAt(Contact(world.peers[world.names[2]], HINTS), "gold")
    refused = world.asked(name, JoinGroups(50, "gold", via))
    assert isinstance(refused, GroupsJoined)
    assert [each.reason for each in refused.refused] == [Reason.TOO_MANY]
    for number, reason in ((51, Reason.TOO_MANY), (50, Reason.IN_USE)):
        declined = world.asked(name, JoinGroups(number, "gold", via))
        assert isinstance(declined, Declined)
        assert declined.reason is reason
    unknown = world.asked(name, LeaveGroups(999))
    assert isinstance(unknown, Declined)
    assert unknown.reason is Reason.UNKNOWN


def test_what_changes_while_an_answer_is_awaited_is_asked_next() -> None:
    node = FastNode("us")
    via = GroupAt(Contact(known_identity("publisher").peer, HINTS), "stock")
    node.up("publisher")
    (first,) = sent(node.ask(JoinGroups(1, "apple/stock", via)), "publisher", Enrol)
    assert sent(node.ask(JoinGroups(2, "pear/stock", via)), "publisher", Enrol) == []
    answered = node.hear("publisher", Enrolled(first.number, None))
    (second,) = sent(answered, "publisher", Enrol)
    assert first.enrolment.predicates == ("apple/stock",)
    assert second.enrolment.predicates == ("apple/stock", "pear/stock")
    told = replies(node.hear("publisher", Enrolled(second.number, None)))
    assert [getattr(each, "predicate", None) for each in told] == ["apple/stock", "pear/stock"]


def test_the_key_of_receipts_is_in_no_text() -> None:
    node = FastNode("us")
    node.up("publisher")
    via = GroupAt(Contact(known_identity("publisher").peer, HINTS), "stock")
    (enrol,) = sent(node.ask(JoinGroups(1, "stock", via)), "publisher", Enrol)
    assert len(enrol.key) == 32
    assert repr(enrol) == "Enrol(1, 'stock')"
    assert list(enrol.__rich_repr__()) == [("", repr(enrol))]


def test_a_subscription_finds_a_group_that_is_opened_later() -> None:
    world = Audience(12, "gold", listed=True)
    reader = world.names[4]
    assert world.asked(reader, JoinGroups(1, "silver")) == GroupsJoined("silver", (), ())
    assert isinstance(world.asked(world.names[2], OpenGroup("silver")), GroupOpened)
    world.run(70.0)
    assert [each.listing.predicate for each in world.status(reader).memberships] == ["silver"]
