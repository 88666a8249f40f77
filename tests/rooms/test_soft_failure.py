"""An event that is allowed where it was said, and not by what holds here now."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.event.event import Verified
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import ReadRoom, SendToRoom, SetLevel, SetMembership
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import (
    GROUP,
    MEMBER,
    POWER,
    RELAY,
    REVOCATION,
    Member,
    Membership,
    Relay,
    Revoked,
    body_of,
    member_key,
)
from linnet.sim.nemesis.open_node import DamageableStore
from linnet.sim.seeded_random import SeededEntropy
from linnet.trace.records import Kind, Record

NOWHERE = EventId(b"\x07" * 32)
BAN, MUTE, SILENCE = "ban", "mute", "silence"


def room_of_four() -> Bench:
    """Ann has founded it; bob is spoken of, cid may put people out, dan is there."""
    bench = Bench("bob", "cid", "dan")
    bench.say(SetLevel(bench.id, 100, person=bench.who("cid").author))
    bench.effects.clear()
    return bench


def levels(bench: Bench, bob: int) -> bytes:
    """The levels as they are, but for bob's."""
    power = bench.room.control.view().power()
    return body_of(replace(power, users={**power.users, bench.who("bob").author: bob}))


def taking_away(bench: Bench, how: str, **other: object) -> Verified:
    """Cid takes bob's right to speak away."""
    bob = bench.who("bob").author
    kind, key, body = {
        BAN: (MEMBER, member_key(bob), body_of(Member(Membership.BAN))),
        MUTE: (POWER, "", levels(bench, -1)),
        SILENCE: (RELAY, to_text(Sort.DEVICE, bench.link("bob")), body_of(Relay(True, bob))),
    }[how]
    return bench.forge("cid", kind, key, body, **other)  # type: ignore[arg-type]


def again(bench: Bench, name: str, **other: object) -> Verified:
    """A control event that anyone may make: who is in the room says so once more."""
    key = member_key(bench.who(name).author)
    return bench.forge(name, MEMBER, key, body_of(Member(Membership.JOIN)), **other)  # type: ignore[arg-type]


def test_it_is_not_shown_not_built_on_and_given_to_who_asks_for_it() -> None:
    bench = Bench("bob", "cid")
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
    # It is all the same for a node that begins anew, and for whoever reads the history there.
    bench.restart()
    bench.ask(ReadRoom(1, bench.id, 0.0, None, state=True))
    assert reply.head in bench.shown()
    assert late.head not in bench.shown()
    bench.up("cid")
    bench.greet("cid")
    (given,) = bench.sent("cid", Given, bench.hear("cid", Want(bench.id, 2, (late.head,))))
    assert given.units == (late.unit,)


@pytest.mark.parametrize("how", [BAN, MUTE, SILENCE])
def test_who_takes_a_right_away_after_an_event_does_not_stand_against_it(how: str) -> None:
    """Cid had been shown what bob said. It comes here after cid's word, and that after what names it."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    said = bench.forge("bob")
    taken = taking_away(bench, how, deps=(said.head,))
    naming = again(bench, "dan", deps=heads, control=(taken.head,))
    room = bench.room

    bench.bring("dan", naming)
    assert not room.control.knows(naming.head)
    bench.bring("dan", taken)
    # Both count; only the second has its place, for what the first depends on is missing.
    assert (room.control.knows(taken.head), room.dag.knows(taken.head)) == (True, False)
    assert (room.control.knows(naming.head), room.dag.knows(naming.head)) == (True, True)
    bench.bring("dan", said)
    assert bench.shown() == [naming.head, said.head, taken.head]
    assert room.intake.soft_failed == 0
    # From now on it stands against all that bob says without knowing it.
    late = bench.forge("bob", deps=heads, control=control, height=None)
    bench.bring("dan", late)
    assert bench.shown()[-1] == taken.head
    assert (room.dag.knows(late.head), room.intake.soft_failed) == (True, 1)


def test_what_is_as_high_as_a_ban_is_not_before_it() -> None:
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    first = bench.forge("bob", deps=heads, control=control)
    taken = taking_away(bench, BAN, deps=(*heads, NOWHERE), height=bench.height(first.head))
    naming = again(bench, "dan", deps=heads, control=(taken.head,))
    bench.bring("dan", naming, taken, first)
    assert not bench.room.dag.knows(taken.head)
    assert bench.shown() == [naming.head]
    assert bench.room.dag.knows(first.head)


def test_a_ban_that_builds_on_what_has_no_place_stands() -> None:
    """Or whoever makes a control event with a dependency that nobody has would disarm all later bans."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    nowhere = again(bench, "dan", deps=(NOWHERE,), height=99)
    bench.bring("dan", nowhere)
    assert bench.room.intake.places.early == {nowhere.head: 99}
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    assert nowhere.head in bench.room.control.fact(bench.room.control.heads[0]).control
    late = bench.forge("bob", deps=heads, control=control)
    bench.bring("dan", late)
    assert late.head not in bench.shown()
    assert bench.room.intake.soft_failed == 1


@pytest.mark.parametrize("how", [BAN, MUTE])
def test_a_ban_stands_though_another_that_has_no_place_hides_it(how: str) -> None:
    """What came last at a place may follow the event; what it replaced does not."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    first = taking_away(bench, how)
    bench.bring("cid", first)
    second = taking_away(bench, how, deps=(NOWHERE,), control=(first.head,), height=99)
    naming = again(bench, "dan", deps=heads, control=(second.head,))
    bench.bring("dan", naming, second)
    late = bench.forge("bob", deps=heads, control=control)
    bench.bring("dan", late)
    assert bench.room.dag.knows(naming.head)
    assert not bench.room.dag.knows(second.head)
    assert late.head not in bench.shown()
    assert bench.room.intake.soft_failed == 1


def test_what_an_event_builds_on_counts_though_it_has_no_place() -> None:
    """Bob is let in again by a word that is early here, and says so in what he names."""
    bench = room_of_four()
    heads = bench.room.dag.heads
    bench.bring("cid", taking_away(bench, MUTE))
    restored = bench.forge("cid", POWER, "", levels(bench, 0), deps=(NOWHERE,), height=99)
    bench.bring("cid", restored)
    assert list(bench.room.intake.places.early) == [restored.head]
    said = bench.forge("bob", deps=heads, control=(restored.head,))
    bench.bring("dan", said)
    assert bench.shown()[-1] == said.head


@pytest.mark.parametrize("spared", [False, True])
def test_a_control_event_is_asked_once_more_when_it_takes_its_place(spared: bool) -> None:
    """Cid's ban of dan was early here; that cid may not ban became known before the ban could be shown."""
    bench = room_of_four()
    bench.join("eve")
    heads, control = bench.room.dag.heads, bench.room.control.heads
    missing = bench.forge("bob")
    body = body_of(Member(Membership.BAN))
    ban = bench.forge("cid", MEMBER, member_key(bench.who("dan").author), body, deps=(missing.head,))
    early = [again(bench, "eve", deps=heads, control=(ban.head,))] if spared else []
    bench.bring("bob", *early, ban)
    assert list(bench.room.intake.places.early) == [ban.head]
    power = bench.room.control.view().power()
    told = bench.forge("ann", POWER, "", body_of(replace(power, users={})), deps=heads, control=control)
    bench.bring("bob", told, missing)
    assert bench.shown() == [*(one.head for one in early), told.head, missing.head]
    assert (bench.room.dag.knows(ban.head), bench.room.intake.soft_failed) == (True, 1)
    # In the state it stands as ever, and has lost against that.
    assert bench.room.control.view().membership(bench.who("dan").author) is Membership.JOIN


@pytest.mark.parametrize("hidden", [False, True])
def test_what_follows_a_control_event_does_not_stand_against_it(hidden: bool) -> None:
    """Cid set levels, which is early here, and then lost the right to it by somebody who had heard of it."""
    bench = room_of_four()
    bench.join("eve")
    heads, control = bench.room.dag.heads, bench.room.control.heads
    power = bench.room.control.view().power()
    nobody = body_of(replace(power, users={}))
    missing = bench.forge("bob")
    levels_set = bench.forge("cid", POWER, "", levels(bench, 20), deps=(missing.head,))
    after = bench.forge("ann", POWER, "", nobody, deps=heads, control=(levels_set.head,))
    bench.bring("bob", after, levels_set)
    if hidden:
        # The same by somebody who had not heard of it, which may follow what it follows.
        other = bench.forge("ann", POWER, "", nobody, deps=(NOWHERE,), control=control, height=99)
        bench.bring("bob", again(bench, "eve", deps=heads, control=(other.head,)), other)
    assert bench.room.dag.knows(after.head)
    assert not bench.room.dag.knows(levels_set.head)
    bench.bring("bob", missing)
    assert bench.shown()[-1] == levels_set.head
    assert bench.room.intake.soft_failed == 0


def test_what_an_event_builds_on_stands_against_it_though_it_has_no_place() -> None:
    """Cid muted bob, and took it back, unknown to ann, who banned cid. Such events' heights prove nothing."""
    bench = room_of_four()
    heads = bench.room.dag.heads
    muted = taking_away(bench, MUTE, deps=(NOWHERE,), height=99)
    restored = bench.forge("cid", POWER, "", levels(bench, 0), control=(muted.head,), height=51)
    cid = member_key(bench.who("cid").author)
    ban = bench.forge(
        "ann", MEMBER, cid, body_of(Member(Membership.BAN)), deps=heads, control=(muted.head,), height=52
    )
    bench.bring("dan", muted, restored, ban)
    assert list(bench.room.intake.places.early) == [muted.head, restored.head]
    said = bench.forge("bob", deps=heads, control=(restored.head,))
    bench.bring("dan", said)
    assert bench.shown() == [ban.head]
    assert bench.room.intake.soft_failed == 1


def test_a_right_that_was_given_back_later_was_not_there() -> None:
    """Cid's ban is early here. Ann took the right away without knowing it, and gave it back knowing it."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    power = bench.room.control.view().power()
    missing = bench.forge("bob")
    body = body_of(Member(Membership.BAN))
    ban = bench.forge("cid", MEMBER, member_key(bench.who("bob").author), body, deps=(missing.head,))
    nobody = body_of(replace(power, users={}))
    taken = bench.forge("ann", POWER, "", nobody, deps=heads, control=control)
    given = bench.forge(
        "ann", POWER, "", body_of(power), deps=(taken.head,), control=(taken.head, ban.head), height=99
    )
    bench.bring("dan", ban, taken, given)
    assert list(bench.room.intake.places.early) == [ban.head]
    bench.bring("dan", missing)
    assert bench.shown() == [taken.head, given.head, missing.head]
    assert (bench.room.dag.knows(ban.head), bench.room.intake.soft_failed) == (True, 1)


def revocation(bench: Bench, name: str, control: tuple[EventId, ...], **other: object) -> Verified:
    """The person revokes their device, where it had done nothing yet."""
    person = SigningKey.generate(SeededEntropy(1, f"identity/{name}"))
    device = bench.who(name).card.device
    body = body_of(Revoked(revoke(person, device, 1)))
    return bench.forge(name, REVOCATION, device.hex(), body, control=control, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("restarts", ["never", "before the revocation", "after it"])
@pytest.mark.parametrize("how", [BAN, MUTE, SILENCE])
def test_what_a_revoked_device_took_away_is_given_back(how: str, restarts: str) -> None:
    """A stolen device bans bob in one half of a parted room. Bob's words come here before its revocation."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, how))
    word = revocation(bench, "cid", control, deps=heads)
    first = bench.forge("bob", deps=heads, control=control)
    second = bench.forge("bob", body=b"y", deps=(first.head,), control=control)
    bench.bring("dan", first, second)
    assert {first.head, second.head}.isdisjoint(bench.shown())
    if restarts == "before the revocation":
        bench.restart()
        bench.ask(ReadRoom(1, bench.id, None, None, state=True))
        bench.up("dan")
        bench.greet("dan")
    effects = bench.bring("dan", word)
    assert bench.shown()[-3:] == [first.head, second.head, word.head]
    told = [each.event for each in bench.records(Kind.DELIVERED, effects)]
    assert told[:2] == [first.head, second.head]
    if restarts == "after it":
        bench.restart()
        bench.ask(ReadRoom(1, bench.id, 0.0, None, state=True))
        assert [one for one in bench.shown() if one in (first.head, second.head)] == [first.head, second.head]
    # Each is shown once, whatever comes later, and others build on both.
    (ours,) = bench.say(SendToRoom(bench.id, (b"welcome back",)))
    assert second.head in bench.room.dag.refs(ours)
    assert bench.shown().count(first.head) == 1


def test_what_is_given_back_counts_no_more_against_its_author() -> None:
    bench = Bench("bob", "cid", "dan", config=RoomsConfig(flood_soft=2))
    bench.say(SetLevel(bench.id, 100, person=bench.who("cid").author))
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    word = revocation(bench, "cid", control, deps=heads)
    bench.bring("dan", *(bench.forge("bob", deps=heads, control=control) for _ in range(2)))
    failure, bob = bench.room.intake.failure, bench.who("bob").author
    assert failure.is_frequent(bob)
    bench.bring("dan", word)
    assert not failure.is_frequent(bob)


def test_what_waits_for_its_place_counts_no_more_against_its_author_once_it_may_be_given_back() -> None:
    bench = Bench("bob", "cid", "dan", config=RoomsConfig(flood_soft=2))
    bench.say(SetLevel(bench.id, 100, person=bench.who("cid").author))
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    word = revocation(bench, "cid", control, deps=heads)
    bench.bring("dan", *(again(bench, "bob", deps=(NOWHERE,), control=control, height=9) for _ in range(2)))
    failure, bob = bench.room.intake.failure, bench.who("bob").author
    assert failure.is_frequent(bob)
    bench.bring("dan", word)
    assert not failure.is_frequent(bob)


def test_of_what_was_one_too_many_the_latest_are_remembered() -> None:
    bench = Bench("bob", "cid", "dan", config=RoomsConfig(flood_soft=1, rejected=3))
    bench.say(SetLevel(bench.id, 100, person=bench.who("cid").author))
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    start = bench._chains["bob"]
    too_many = []
    for number in range(6):
        bench._chains["bob"] = start  # None builds on another, or it would wait for that.
        too_many.append(bench.forge("bob", body=b"%d" % number, deps=heads, control=control))
        bench.bring("dan", too_many[-1])
    assert bench.room.dag.knows(too_many[0].head)
    assert list(bench.room.intake.failure.shed) == [each.head for each in too_many[-3:]]


def test_a_revocation_gives_back_nothing_that_another_took_away() -> None:
    bench = room_of_four()
    bench.join("eve")
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    word = revocation(bench, "cid", control, deps=heads)
    bench.say(SetMembership(bench.id, bench.who("eve").author, Membership.BAN))
    late = bench.forge("eve", deps=heads, control=control)
    bench.bring("dan", late, word)
    assert bench.room.control.silenced, "nothing was silenced: this shows nothing"
    assert late.head not in bench.shown()


def test_a_revoked_device_is_given_nothing_back() -> None:
    """Cid's stolen device bans bob, whose device turns out to be stolen as well."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    late = bench.forge("bob", deps=heads, control=control)
    words = [revocation(bench, name, control, deps=heads) for name in ("bob", "cid")]
    bench.bring("dan", late, *words)
    assert bench.room.control.silenced, "nothing was silenced: this shows nothing"
    assert bench.room.dag.knows(late.head)
    assert late.head not in bench.shown()


def test_a_control_event_that_waits_for_its_place_is_judged_without_what_is_revoked() -> None:
    """When it was judged, what a stolen device did stood against it."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    missing = bench.forge("dan", deps=heads, control=control)
    bench.bring("cid", taking_away(bench, BAN))
    word = revocation(bench, "cid", control, deps=heads)
    waiting = again(bench, "bob", deps=(missing.head,), control=control)
    bench.bring("dan", waiting, word)
    assert (bench.room.control.knows(waiting.head), bench.room.dag.knows(waiting.head)) == (True, False)
    bench.bring("dan", missing)
    assert bench.shown()[-1] == waiting.head


def test_what_a_revoked_device_took_away_is_given_back_while_its_revocation_has_no_place() -> None:
    """The revocation counts, and depends on what is still on its way. Bob's word comes in between."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    missing = bench.forge("dan", deps=heads, control=control)
    word = revocation(bench, "cid", control, deps=(missing.head,))
    bench.bring("dan", word)
    assert (bench.room.control.knows(word.head), bench.room.dag.knows(word.head)) == (True, False)
    said = bench.forge("bob", deps=heads, control=control)
    bench.bring("dan", said, missing)
    before = [one for one in bench.shown() if one in (said.head, missing.head, word.head)]
    bench.restart()
    bench.ask(ReadRoom(1, bench.id, 0.0, None, state=True))
    assert said.head in bench.shown()
    assert before == [said.head, missing.head, word.head], "it was shown only after a restart"


def test_an_operation_on_keys_that_is_given_back_is_no_head() -> None:
    """No event builds on one, before a restart as after it."""
    bench = room_of_four()
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    word = revocation(bench, "cid", control, deps=heads)
    operation = bench.forge("bob", GROUP, deps=heads, control=control)
    bench.bring("dan", operation)
    assert not bench.room.memory.is_shown(operation.head)
    effects = bench.bring("dan", word)
    assert bench.room.memory.is_shown(operation.head)
    assert [each.event for each in bench.records(Kind.DELIVERED, effects)] == [word.head]
    assert operation.head not in bench.room.dag.heads
    before = bench.room.dag.heads
    bench.restart()
    assert bench.room.dag.heads == before


@pytest.mark.parametrize("restarts", ["before the revocation", "after it"])
def test_what_waits_for_damaged_control_events_is_not_judged_before_they_are_back(restarts: str) -> None:
    """A word of eve, who was put out by right, builds on a control event that the disk has lost."""
    bench = Bench("bob", "cid", "dan", "eve", store=DamageableStore())
    bench.say(SetLevel(bench.id, 100, person=bench.who("cid").author))
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    word = revocation(bench, "cid", control, deps=heads)
    lost = again(bench, "dan", deps=heads, control=control)
    bench.bring("dan", lost)
    bench.say(SetMembership(bench.id, bench.who("eve").author, Membership.BAN))
    late = bench.forge("eve", deps=heads, control=(lost.head,))
    first = bench.forge("bob", deps=heads, control=(lost.head,))
    bench.bring("dan", late, first, *([word] if restarts == "after it" else []))
    assert late.head not in bench.shown()
    assert isinstance(bench.store, DamageableStore)
    bench.store.log.spoil(lost.head)
    bench.restart()
    assert late.head in bench.room.memory.held
    bench.ask(ReadRoom(1, bench.id, 0.0, None, state=True))
    bench.up("dan")
    bench.greet("dan")
    if restarts == "before the revocation":
        bench.bring("dan", word)
    bench.bring("dan", lost)
    assert not bench.room.memory.held
    assert (first.head in bench.shown(), late.head in bench.shown()) == (True, False)


def test_what_was_damaged_and_came_again_is_given_back() -> None:
    bench = Bench("bob", "cid", "dan", store=DamageableStore())
    bench.say(SetLevel(bench.id, 100, person=bench.who("cid").author))
    heads, control = bench.room.dag.heads, bench.room.control.heads
    bench.bring("cid", taking_away(bench, BAN))
    word = revocation(bench, "cid", control, deps=heads)
    said = bench.forge("bob", deps=heads, control=control)
    bench.bring("dan", said)
    assert isinstance(bench.store, DamageableStore)
    bench.store.log.spoil(said.head)
    bench.restart()
    bench.ask(ReadRoom(1, bench.id, None, None, state=True))
    bench.up("dan")
    bench.greet("dan")
    bench.bring("dan", said)
    assert (bench.room.dag.knows(said.head), said.head in bench.shown()) == (True, False)
    bench.bring("dan", word)
    assert said.head in bench.shown()
