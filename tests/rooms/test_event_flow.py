"""What follows when an event has its place, and events of our own."""

from __future__ import annotations

from tests.rooms.bench import Bench

from linnet.core.effects import AfterCommit, Deliver, Reply, Send
from linnet.core.inputs import Asked, Received
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.delivery.receipts import Fate
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined
from linnet.rooms.commands import ExamineLedger, LedgerIs, SendToRoom, Sent, SetLevel, SetMembership
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import (
    MEMBER,
    POWER,
    REVOCATION,
    Member,
    Membership,
    Power,
    Revoked,
    body_of,
    member_key,
)
from linnet.rooms.messages import Refused
from linnet.rooms.receipts import sign_room_receipt
from linnet.sim.seeded_random import SeededEntropy


def fates(bench: Bench, event: bytes) -> dict[bytes, Fate]:
    ledger = bench.ask(ExamineLedger(bench.id, event))  # type: ignore[arg-type]
    assert isinstance(ledger, LedgerIs)
    return {each.person: each.fate for each in ledger.events[0].members}


def test_what_we_say_is_sent_and_answered_only_after_the_commit() -> None:
    bench = Bench("bob", "cid")
    effects = bench.peer.handle(Asked(99, SendToRoom(bench.id, (b"hello",))), bench.now)
    assert not [each for each in effects if isinstance(each, Send | Deliver | Reply)]
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    assert [each.peer for each in promised if isinstance(each, Send)] == [
        bench.link("bob"),
        bench.link("cid"),
    ]
    assert len([each for each in promised if isinstance(each, Deliver)]) == 1
    (reply,) = [each for each in promised if isinstance(each, Reply)]
    assert reply.request == 99
    assert isinstance(reply.result, Sent)


def test_what_others_say_is_passed_on_at_once_and_handed_over_after_the_commit() -> None:
    bench = Bench("bob", "cid")
    made = bench.forge("bob")
    effects = bench.peer.handle(Received(bench.link("bob"), bench.data(made)), bench.now)
    assert [each.peer for each in effects if isinstance(each, Send)] == [bench.link("cid")]
    assert not [each for each in effects if isinstance(each, Deliver)]
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    assert len([each for each in promised if isinstance(each, Deliver)]) == 1


def test_when_too_much_waits_nothing_new_of_ours_is_put_behind_it() -> None:
    """It would be out, and lost here: a chain with a hole."""
    bench = Bench("bob", "cid", config=RoomsConfig(waiting_events=1))
    missing = bench.forge("cid")
    bench.bring("bob", bench.forge("bob", deps=(missing.head,)))
    (ours,) = bench.say(SendToRoom(bench.id, (b"fine: all that it comes after is known",)))
    author = bench.room.author
    author.prev = missing.head  # as if our last word waited too
    bench.room.intake.places.early[missing.head] = 1
    seq = author.seq
    declined = bench.ask(SendToRoom(bench.id, (b"x",)))
    assert isinstance(declined, Declined)
    assert declined.reason is Reason.QUEUE_FULL
    assert author.seq == seq
    assert bench.room.dag.knows(ours)


def test_an_event_that_comes_after_ours_acknowledges_it() -> None:
    bench = Bench("bob")
    bob = bench.who("bob").author
    (ours,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    assert fates(bench, ours) == {bob: Fate.PENDING}
    bench.bring("bob", bench.forge("bob"))
    assert fates(bench, ours) == {bob: Fate.DELIVERED}


def test_naming_ours_as_a_control_head_acknowledges_nothing() -> None:
    """It may be known by who has not all that it follows."""
    bench = Bench("bob")
    bob = bench.who("bob").author
    before = bench.room.dag.heads
    (said,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    bench.govern(MEMBER, member_key(bench.who("ann").author), body_of(Member(Membership.JOIN)))
    bench.bring("bob", bench.forge("bob", deps=before))
    assert fates(bench, said) == {bob: Fate.PENDING}


def test_what_failed_softly_here_acknowledges_all_the_same() -> None:
    bench = Bench("bob", "cid")
    bob = bench.who("bob").author
    (ours,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    control = bench.room.control.heads
    heads = bench.room.dag.heads
    bench.say(SetMembership(bench.id, bob, Membership.BAN))
    bench.bring("cid", bench.forge("bob", deps=heads, control=control))
    assert bench.room.intake.soft_failed == 1
    assert fates(bench, ours)[bob] is Fate.DELIVERED


def test_a_receipt_that_names_what_is_not_here_counts_when_it_comes() -> None:
    bench = Bench("bob", "cid")
    bob, cid = bench.who("bob"), bench.who("cid")
    (ours,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    after = bench.forge("bob")
    bench.hear("cid", sign_room_receipt(cid.device, cid.card, bench.id, 5, (after.head,), off=False))
    assert fates(bench, ours) == {bob.author: Fate.PENDING, cid.author: Fate.PENDING}
    bench.bring("bob", after)
    assert fates(bench, ours) == {bob.author: Fate.DELIVERED, cid.author: Fate.DELIVERED}


def test_receipts_of_a_revoked_device_or_of_our_own_person_are_no_acknowledgement() -> None:
    bench = Bench("bob")
    ann, bob = bench.who("ann"), bench.who("bob")
    (ours,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    bench.hear("bob", sign_room_receipt(ann.device, ann.card, bench.id, 5, (ours,), off=True))
    assert fates(bench, ours) == {bob.author: Fate.PENDING}


def test_a_refusal_of_a_member_outlives_what_follows() -> None:
    bench = Bench("bob")
    bob = bench.who("bob").author
    (ours,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    bench.hear("bob", Refused(bench.id, ours, Reason.SOFT_FAILED, "no"))
    bench.bring("bob", bench.forge("bob"))
    assert fates(bench, ours) == {bob: Fate.REFUSED}


def test_a_refusal_by_what_is_silenced_since_is_withdrawn() -> None:
    """Bob refused our words by something that a stolen device did. It is revoked, so bob shows them."""
    bench = Bench("bob", "cid")
    bench.say(SetLevel(bench.id, 100, person=bench.who("cid").author))
    bob = bench.who("bob").author
    said = [bench.say(SendToRoom(bench.id, (body,)))[0] for body in (b"hello", b"again")]
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.hear("bob", Refused(bench.id, said[0], Reason.SOFT_FAILED, "banned"))
    assert fates(bench, said[0])[bob] is Fate.REFUSED
    ban = bench.forge("cid", MEMBER, member_key(bob), body_of(Member(Membership.BAN)), deps=heads)
    device = bench.who("cid").card.device
    word = revoke(SigningKey.generate(SeededEntropy(1, "identity/cid")), device, 1)
    body = body_of(Revoked(word))
    revoked = bench.forge("cid", REVOCATION, device.hex(), body, deps=heads, control=control)
    bench.bring("cid", ban, revoked)
    assert bench.room.control.silenced, "nothing was silenced: this shows nothing"
    assert fates(bench, said[0])[bob] is Fate.PENDING
    bench.greet("bob")
    bench.bring("bob", bench.forge("bob", deps=(said[1],)))
    assert fates(bench, said[0])[bob] is Fate.DELIVERED
    bench.restart()
    assert fates(bench, said[0])[bob] is Fate.DELIVERED


def test_a_refusal_that_comes_after_the_revocation_of_what_it_was_for_does_not_stay() -> None:
    """Bob said no before the revocation had reached him, and we had it already."""
    bench = Bench("bob", "cid", "dan")
    bench.say(SetLevel(bench.id, 100, person=bench.who("cid").author))
    bob = bench.who("bob").author
    said = [bench.say(SendToRoom(bench.id, (body,)))[0] for body in (b"hello", b"again")]
    heads, control = bench.room.dag.heads, bench.room.control.heads
    ban = bench.forge("cid", MEMBER, member_key(bob), body_of(Member(Membership.BAN)), deps=heads)
    device = bench.who("cid").card.device
    word = revoke(SigningKey.generate(SeededEntropy(1, "identity/cid")), device, 1)
    revoked = bench.forge(
        "cid", REVOCATION, device.hex(), body_of(Revoked(word)), deps=heads, control=control
    )
    bench.bring("dan", ban, revoked)
    assert bench.room.control.silenced, "nothing was silenced: this shows nothing"
    bench.greet("bob")
    bench.hear("bob", Refused(bench.id, said[0], Reason.SOFT_FAILED, "banned"))
    bench.bring("bob", bench.forge("bob", deps=(said[1], revoked.head)))
    assert fates(bench, said[0])[bob] is Fate.DELIVERED


def test_that_somebody_does_not_know_us_is_no_refusal() -> None:
    bench = Bench("bob")
    bob = bench.who("bob").author
    (ours,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    bench.hear("bob", Refused(bench.id, None, Reason.NOT_A_MEMBER, "greet first"))
    assert fates(bench, ours) == {bob: Fate.PENDING}


def test_an_author_who_brings_what_fails_softly_is_told() -> None:
    bench = Bench("bob", "cid", "dan")
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.say(SetMembership(bench.id, bench.who("dan").author, Membership.BAN))
    late = bench.forge("dan", deps=heads, control=control)
    effects = bench.bring("bob", late)
    assert not bench.sent("bob", Refused, effects), "bob only passes it on"
    assert not bench.sent("cid", Data, effects)  # a message that is not shown is not passed on
    muted = Power({bench.who("bob").author: -1})
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.govern(POWER, "", body_of(muted))
    own = bench.forge("bob", deps=heads, control=control)
    effects = bench.bring("bob", own)
    assert [each.event for each in bench.sent("bob", Refused, effects)] == [own.head]
