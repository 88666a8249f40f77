"""Who of a room is at the other end of a link, and what greetings lead to."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.relay.scenes import OPEN, World, card_of, peer_of

from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Want
from linnet.rooms.content import Membership
from linnet.rooms.messages import Greet, Refused, Resync, ResyncPage
from linnet.rooms.relay.control_fetch import FetchDue
from linnet.testing.rooms import ticket_of


def test_members_and_relays_are_here_while_their_link_lasts() -> None:
    world = World("r0", "r1")
    world.link("r0", "ann")
    assert world.station("r0").relay.status()[0].online == (peer_of("r1"), peer_of("ann"))
    world.unlink("r0", "ann")
    world.part("r0", "r1")
    assert world.station("r0").relay.status()[0].online == ()


def test_who_knows_more_is_asked_before_it_is_judged() -> None:
    """A member by a join that the relay has not seen: the greeting and a resync wait for it."""
    world = World("r0")
    world.join("cyd")
    (asked,) = world.tell("r0", "cyd", world.greet("cyd"))
    assert isinstance(asked, Want)
    before = len(world.inbox[peer_of("cyd")])
    assert world.tell("r0", "cyd", Resync(world.room, 77, None, 100, False)) == []
    world.tell("r0", "cyd", world.control_page(asked.request))
    kinds = [type(each) for each in world.inbox[peer_of("cyd")][before:]]
    assert kinds == [Greet, ResyncPage]
    page = world.inbox[peer_of("cyd")][-1]
    assert isinstance(page, ResyncPage)
    assert (page.request, page.reason) == (77, None)


def test_who_only_says_so_is_refused_after_a_while() -> None:
    world = World("r0")
    lie = world.greet("eve", control=(world.say("eve").id,))
    (asked,) = world.tell("r0", "eve", lie)
    assert asked == Want(world.room, 1, lie.control)  # and not a word of our own heads
    world.fire("r0", FetchDue)
    assert world.inbox[peer_of("eve")][-1] == Refused(
        world.room, None, Reason.NOT_INVITED, "not of this room"
    )


def test_a_ticket_is_enough_for_a_greeting_and_for_nothing_more() -> None:
    world = World("r0")
    ticket = ticket_of("ann", world.room)
    (greet, _) = world.tell("r0", "cyd", replace(world.greet("cyd"), ticket=ticket))
    assert isinstance(greet, Greet)
    assert world.station("r0").relay.status()[0].online == ()
    assert world.resync("r0", "cyd").reason is Reason.NOT_A_MEMBER


def test_who_leaves_is_not_here_any_more() -> None:
    world = World("r0")
    for who in ("ann", "ben"):
        world.link("r0", who)
    world.send("r0", "ben", world.membership("ben", "ben", Membership.LEAVE))
    assert world.station("r0").relay.status()[0].online == (peer_of("ann"),)


def test_relays_greet_each_other_and_compare() -> None:
    world = World("r0", "r1", config=OPEN)
    world.part("r0", "r1")
    world.link("r0", "ann")
    new = world.keep_for(5000)
    world.send("r0", "ann", new)
    assert world.station("r1").store.log.get(new.id) is None
    world.meet("r0", "r1")
    assert world.station("r1").store.log.get(new.id) is not None
    greeting = world.greet("ann")
    assert (greeting.card, greeting.control) == (card_of("ann"), world.control)
