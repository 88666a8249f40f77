"""An event that is allowed where it was said, and not by what holds here now."""

from __future__ import annotations

from tests.rooms.bench import Bench

from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given, Want
from linnet.rooms.commands import SendToRoom, SetMembership
from linnet.rooms.content import Membership
from linnet.trace.records import Kind, Record


def test_it_is_not_shown_not_built_on_and_given_to_who_asks_for_it() -> None:
    bench = Bench()
    bench.join("bob", "cid")
    deps, control = bench.room.dag.heads, bench.room.control.heads
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    late = bench.forge("bob", deps=deps, control=control)
    effects = bench.bring("cid", late)
    records = [each for each in effects if isinstance(each, Record) and each.event == late.head]
    assert [(each.kind, each.reason) for each in records][:2] == [
        (Kind.RECEIVED, None),
        (Kind.REJECTED, Reason.SOFT_FAILED),
    ]
    assert late.head not in bench.shown()
    (ours,) = bench.say(SendToRoom(bench.id, (b"we go on",)))
    assert late.head not in bench.room.dag.refs(ours)
    effects = bench.hear("cid", Want(bench.id, 1, (late.head,)))
    (given,) = bench.sent("cid", Given, effects)
    assert (given.units, given.unknown, given.reason) == ((late.unit,), (), None)
    # What builds on it is a member's word, and is shown.
    reply = bench.forge("cid", deps=(late.head,))
    bench.bring("cid", reply)
    assert bench.shown()[-1] == reply.head
    assert late.head not in bench.shown()
