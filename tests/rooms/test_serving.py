"""Pages of events: what is asked for, in order, within bounds."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Beyond, Further, Want
from linnet.event.signing import unit_head
from linnet.rooms.commands import SendToRoom, SetLevel
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import AskControl, ControlPage

NOWHERE = EventId(b"\x07" * 32)


def filled(events: int = 30, **config: int) -> Bench:
    bench = Bench(replace(RoomsConfig(), **config))
    bench.join("bob")
    bench.say(SendToRoom(bench.id, tuple(str(number).encode() for number in range(events))))
    return bench


def test_events_by_id_with_the_cards_that_they_need() -> None:
    bench = filled()
    ids = tuple(bench.room.dag.ids_in_order())[:5]
    given = bench.room.serving.want(Want(bench.id, 3, (*ids, NOWHERE)), control_only=False)
    assert [unit_head(unit) for unit in given.units] == list(ids)
    assert (given.request, given.unknown, given.reason) == (3, (NOWHERE,), Reason.NOT_HELD)
    authors = {unit.author for unit in given.units}
    assert {card.person for card in given.cards} == authors


def test_a_page_has_so_many_events_and_bytes_and_says_that_there_are_more() -> None:
    bench = filled(page_events=8)
    ids = tuple(bench.room.dag.ids_in_order())[:20]
    given = bench.room.serving.want(Want(bench.id, 1, ids), control_only=False)
    assert (len(given.units), given.unknown, given.reason) == (8, (), Reason.TOO_LARGE)
    small = filled(page_bytes=1500)
    given = small.room.serving.want(Want(small.id, 1, tuple(small.room.dag.ids_in_order())), False)
    assert 1 <= len(given.units) < 8
    tiny = filled(page_bytes=1)
    given = tiny.room.serving.want(Want(tiny.id, 1, tuple(tiny.room.dag.ids_in_order())), False)
    assert len(given.units) == 1  # one always goes, or nothing ever would


def test_a_relay_is_given_control_events_alone() -> None:
    bench = filled()
    ids = tuple(bench.room.dag.ids_in_order())
    given = bench.room.serving.want(Want(bench.id, 1, ids), control_only=True)
    assert len(given.units) == len(bench.room.control)
    assert given.reason is Reason.NOT_HELD
    assert len(given.unknown) == len(ids) - len(bench.room.control)


def test_a_walk_brings_everything_in_causal_order_page_by_page() -> None:
    bench = filled(page_events=7)
    bob = bench.link("bob")
    seen: list[EventId] = []
    heads: tuple[EventId, ...] = ()
    while True:
        page: Further = bench.room.serving.beyond(bob, Beyond(bench.id, 1, heads))
        seen += [unit_head(unit) for unit in page.units]
        heads = tuple(seen[-1:])
        if not page.more:
            break
    assert seen == list(bench.room.dag.ids_in_order())
    again = bench.room.serving.beyond(bob, Beyond(bench.id, 2, bench.room.dag.all_heads))
    assert (again.units, again.more, again.unknown) == ((), False, ())
    assert bench.room.serving.beyond(bob, Beyond(bench.id, 3, (NOWHERE,))).unknown == (NOWHERE,)
    bench.room.serving.down(bob)


def test_control_events_beyond_some_heads() -> None:
    bench = filled()
    serving, control = bench.room.serving, bench.room.control
    everything = serving.control(AskControl(bench.id, 1, (), None), ())
    assert len(everything.units) == len(control)
    assert (everything.heads, everything.more, everything.reason) == (control.heads, False, None)
    nothing = serving.control(AskControl(bench.id, 1, control.heads, None), ())
    assert nothing.units == ()
    create = EventId(bench.id)
    beyond = serving.control(AskControl(bench.id, 1, (create, NOWHERE), None), ())
    assert len(beyond.units) == len(control) - 1
    refused = serving.refuse(AskControl(bench.id, 9, (), None), Reason.BANNED)
    assert refused == ControlPage(bench.id, 9, (), (), False, (), (), Reason.BANNED)


def test_up_to_an_event_only_what_it_builds_on_is_shown() -> None:
    bench = filled()
    before = bench.room.control.heads
    (upto,) = bench.say(SetLevel(bench.id, 60, kind="ban"))
    bench.say(SetLevel(bench.id, 70, kind="ban"))
    page = bench.room.serving.control(AskControl(bench.id, 1, before, None), (), upto)
    assert [unit_head(unit) for unit in page.units] == [upto]
    assert (page.heads, page.more) == ((upto,), False)


def test_a_page_names_no_more_relays_than_a_message_holds() -> None:
    bench = filled()
    relays = tuple(Contact(PeerId(bytes([number]) * 32), ()) for number in range(70))
    page = bench.room.serving.control(AskControl(bench.id, 1, (), None), relays)
    assert page.relays == relays[:64]
