"""What a relay signs: which events it takes, and what its pages show. Two statements never contradict."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations
from random import Random

import pytest
from msgspec.structs import replace
from tests.rooms.relay.scenes import OPEN, World, peer_of

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Damage, Entry
from linnet.event.event import Event
from linnet.event.signing import recall_unit, unit_head
from linnet.rooms.messages import ResyncPage
from linnet.rooms.relay.event_cache import ExpiryDue
from linnet.rooms.relay_statements import RelayStatement, check_statement, find_contradiction
from linnet.store.memory import MemoryStore


def signing(*people: str, **limits: object) -> World:
    world = World("r0", config=replace(OPEN, **limits))
    world.link("r0", *(people or ("ann", "ben")))
    world.signed = True
    return world


def proofs(said: list[RelayStatement]) -> list[Reason]:
    pairs = permutations(said, 2)
    return [found.reason for pair in pairs if (found := find_contradiction(*pair)) is not None]


def test_an_answer_says_which_events_are_kept_and_which_are_not() -> None:
    world = signing()
    hello, other = world.say("ann"), world.chronicle.sign("dan", "message", None, b"no", world.control)
    outcomes = world.send("r0", "ann", hello, other)
    (said,) = world.statements("ann")
    check_statement(world.room, peer_of("r0"), said)
    assert outcomes[0].cursor is not None
    kept = [(each.event, each.position, each.control) for each in said.held]
    assert kept == [(hello.id, outcomes[0].cursor.position, False)]
    assert [each.event for each in said.refused] == [other.id]
    assert said.reach is None
    assert said.count == len(world.control_units()) + 1


def test_one_answer_is_signed_once_and_only_for_who_asks() -> None:
    world = signing()
    world.send("r0", "ann", *(world.say("ann", b"%d" % n) for n in range(20)))
    assert len(world.statements("ann")) == 1
    world.signed = False
    world.send("r0", "ann", world.say("ann", b"more"))
    world.resync("r0", "ben")
    assert (len(world.statements("ann")), world.statements("ben")) == (1, [])


def test_a_page_names_all_that_it_shows_and_a_signature_fits_its_room_alone() -> None:
    world = signing()
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    page = world.resync("r0", "ben")
    assert page.said is not None
    assert page.said.reach is not None
    assert [each.event for each in page.said.held] == [unit_head(unit) for unit in page.units]
    assert page.next is not None
    assert (page.said.reach.after, page.said.reach.upto) == (0, page.next.position)
    check_statement(world.room, peer_of("r0"), page.said)
    for room, relay in ((type(world.room)(bytes(32)), "r0"), (world.room, "ben")):
        with pytest.raises(RemoteError):
            check_statement(room, peer_of(relay), page.said)
    with pytest.raises(RemoteError):
        check_statement(world.room, peer_of("r0"), replace(page.said, count=page.said.count + 1))


def test_pushed_pages_name_what_their_reader_sent_itself() -> None:
    world = signing()
    world.resync("r0", "ann", follow=True)
    mine = world.say("ann")
    world.send("r0", "ann", mine)
    pushed = [each for each in world.inbox[peer_of("ann")] if isinstance(each, ResyncPage) and each.after]
    assert [each.units for each in pushed] == [()]
    assert pushed[0].said is not None
    assert [each.event for each in pushed[0].said.held] == [mine.id]


def test_who_hides_an_event_that_it_signed_for_is_proved_to() -> None:
    world = signing()
    hello, bye = world.say("ann"), world.say("ann", b"bye")
    world.send("r0", "ann", hello, bye)
    world.resync("r0", "ben")
    (taken,), (page,) = world.statements("ann"), world.statements("ben")
    assert proofs([taken, page]) == []
    lie = replace(page, held=tuple(each for each in page.held if each.event != bye.id))
    found = find_contradiction(taken, lie)
    assert found is not None
    assert (found.reason, found.event) == (Reason.WITHHELD, bye.id)
    # A page that does not reach so far, says that it let the event go, or that it is damaged, proves nothing.
    assert lie.reach is not None
    position = taken.held[1].position
    for reach in (
        replace(lie.reach, upto=position - 1),
        replace(lie.reach, after=position),
        replace(lie.reach, floor=position),
        replace(lie.reach, gone=(bye.id,)),
    ):
        assert find_contradiction(taken, replace(lie, reach=reach)) is None
    assert find_contradiction(taken, replace(lie, reach=replace(lie.reach, floor=position - 1))) is not None


def test_a_control_event_is_owed_for_ever() -> None:
    world = signing()
    ban = world.keep_for(1000)
    world.send("r0", "ann", ban)
    page = world.resync("r0", "ben").said
    assert page is not None
    assert page.reach is not None
    (taken,) = world.statements("ann")
    lie = replace(page, held=(), reach=replace(page.reach, floor=page.reach.upto))
    assert find_contradiction(taken, lie) is not None


def test_two_histories_show_by_one_number_with_two_digests() -> None:
    world = signing()
    world.send("r0", "ann", world.say("ann"))
    (taken,) = world.statements("ann")
    other = replace(taken, digest=bytes(32))
    assert proofs([taken, other]) == [Reason.EQUIVOCATION, Reason.EQUIVOCATION]
    assert proofs([taken, replace(other, count=taken.count + 1)]) == []


def test_a_restart_goes_on_and_still_owes_what_it_signed() -> None:
    world = signing()
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    world.restart("r0")
    world.link("r0", "ann", "ben")
    page = world.resync("r0", "ben").said
    (taken,) = world.statements("ann")
    assert page is not None
    assert page.line != taken.line
    assert [each.line for each in page.past] == [taken.line]
    lie = replace(page, held=tuple(each for each in page.held if each.event != hello.id))
    assert proofs([taken, page]) == []
    assert proofs([taken, lie]) == [Reason.WITHHELD]


def test_a_restored_copy_is_told_as_a_loss_and_never_as_a_lie() -> None:
    world = signing()
    world.send("r0", "ann", world.say("ann", b"kept"))
    station = world.station("r0")
    assert isinstance(station.store, MemoryStore)
    copy = deepcopy(station.store)
    world.send("r0", "ann", world.say("ann", b"lost"))
    station.store = copy
    world.restart("r0")
    world.link("r0", "ann", "ben")
    world.resync("r0", "ben")
    # Other events take the positions of those that were lost.
    world.send("r0", "ann", world.say("ann", b"new"), world.say("ann", b"newer"))
    world.resync("r0", "ben")
    found = proofs(world.statements("ann", "ben"))
    assert set(found) == {Reason.LOST}


@pytest.mark.parametrize("runs", [1, 2])
def test_a_restored_copy_goes_on_from_where_it_began_and_not_from_its_first_statement(runs: int) -> None:
    """As many events as were lost come in before it signs anything, for example in its first request."""
    world = signing()
    world.send("r0", "ann", world.say("ann", b"kept"))
    station = world.station("r0")
    assert isinstance(station.store, MemoryStore)
    copy = deepcopy(station.store)
    world.send("r0", "ann", world.say("ann", b"lost"))
    station.store = copy
    for run in range(runs):
        world.restart("r0")
        world.link("r0", "ann", "ben")
        world.signed = run == runs - 1
        world.send("r0", "ann", *(world.say("ann", b"new %d" % number) for number in range(3)))
    world.resync("r0", "ben")
    found = proofs(world.statements("ann", "ben"))
    assert set(found) == {Reason.LOST}


def test_what_is_damaged_is_said_to_be_and_is_no_lie() -> None:
    world = signing()
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    station = world.station("r0")
    log = station.store.log
    read = log.read

    def damaged(topic: object, after: int, limit: int) -> object:
        found = read(topic, after, limit)  # type: ignore[arg-type]
        left = [each for each in found if each[1].head == hello.id]
        log.left_out = tuple(  # type: ignore[misc]
            Damage(e.topic, e.author, e.device, e.first, 1, e.head) for _, e in left
        )
        return [each for each in found if each not in left]

    log.read = damaged  # type: ignore[method-assign,assignment]
    page = world.resync("r0", "ben")
    assert page.said is not None
    assert page.said.reach is not None
    assert page.said.reach.gone == (hello.id,)
    assert page.said.past == ()
    assert hello.id not in [each.event for each in page.said.held]
    assert proofs(world.statements("ann", "ben")) == []


def test_what_was_damaged_before_it_made_room_is_no_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody had read it, so nobody knows of the damage: its content has another id by then."""
    world = signing(room_bytes=6000, sender_bytes=6000)
    first, second = world.say("ann", b"a" * 300), world.say("ann", b"b" * 300)
    world.send("r0", "ann", first, second)
    log = world.station("r0").store.log
    evict = log.evict

    def damaged(topic: TopicId, before: float | None, size: int | None, limit: int) -> list[Entry]:
        found = evict(topic, before, size, limit)
        return [replace(each, raw=each.raw.replace(b"a" * 300, b"a" * 299 + b"z")) for each in found]

    monkeypatch.setattr(log, "evict", damaged)
    for number in range(300):
        who = "ann" if number % 2 else "ben"
        world.send("r0", who, world.say(who, b"%d" % number))
        if log.get(first.id) is None:
            break
    assert log.get(first.id) is None
    assert log.get(second.id) is not None
    page = world.resync("r0", "ben").said
    assert page is not None
    assert page.reach is not None
    assert page.reach.floor == world.statements("ann")[0].held[0].position
    assert proofs(world.statements("ann", "ben")) == []


def test_what_is_too_old_to_be_shown_and_not_removed_yet_is_no_lie() -> None:
    world = signing(max_lifetime=60.0)
    for start in range(0, 1500, 500):  # More than one look removes.
        world.send("r0", "ann", *(world.say("ann", b"%d" % n) for n in range(start, start + 500)))
    world.now += 100
    page = world.resync("r0", "ben")
    assert world.said(page) == []
    assert proofs(world.statements("ann", "ben")) == []
    taken, shown = world.statements("ann")[-1], world.statements("ben")[-1]
    assert shown.reach is not None
    assert shown.reach.floor == taken.held[-1].position


@pytest.mark.parametrize("seed", range(12))
def test_an_honest_relay_is_never_proved_to_lie(seed: int) -> None:
    """Whatever happens to it: restarts, restored copies, steps of its clock, expiry and full space."""
    luck = Random(seed)
    people = ("ann", "ben", "cyd")
    world = signing("ann", "ben", max_lifetime=50.0, room_bytes=6000, sender_bytes=4000)
    world.join("cyd")
    copies: list[MemoryStore] = []
    restored = False
    cursors = dict.fromkeys(people)
    for _ in range(120):
        who = luck.choice(people)
        match luck.choice(("say", "say", "read", "read", "follow", "control", "wait", "rare")):
            case "say":
                said = [
                    world.say(who, luck.randbytes(luck.randrange(400))) for _ in range(luck.randrange(1, 5))
                ]
                world.send("r0", who, *said)
            case "read" | "follow" as how:
                page = world.resync(
                    "r0", who, cursors[who], limit=luck.choice((3, 1024)), follow=how == "follow"
                )
                cursors[who] = page.next if page.reason is None else page.oldest
                if luck.random() < 0.2:
                    cursors[who] = None
            case "control":
                world.send("r0", "ann", world.keep_for(luck.choice((1000, 20_000, None))))
            case "wait":
                world.now += luck.choice((1.0, 30.0, 100.0, -40.0))
                world.fire("r0", ExpiryDue)
            case _:
                station = world.station("r0")
                assert isinstance(station.store, MemoryStore)
                if luck.random() < 0.4:
                    copies.append(deepcopy(station.store))
                elif copies and luck.random() < 0.4:
                    station.store = deepcopy(luck.choice(copies))
                    restored = True
                world.restart("r0")
                world.link("r0", *people)
                # Its store may lack what the room decided since.
                world.send("r0", "ann", *_control_events(world))
    signed = world.statements(*people)
    assert len(signed) > 40
    found = set(proofs(signed))
    assert found <= ({Reason.LOST} if restored else set())


def _control_events(world: World) -> list[Event]:
    return [recall_unit(unit).events[0] for unit in world.control_units()][1:]
