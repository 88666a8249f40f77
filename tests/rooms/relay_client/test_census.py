"""The move of a room from one relay to another: nothing may be left behind."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.circle import Circle
from tests.rooms.relay_voices import ROOM, cursor, event_id, page, relay_id

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.peer.config import PeerConfig
from linnet.rooms.commands import (
    AddRelay,
    CompareRelays,
    DropRelay,
    JoinRoom,
    RelaysCompared,
    RoomMade,
    Sent,
)
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.event_types import Newcomers
from linnet.rooms.messages import RelayOutcome, RelayTaken, ResyncPage
from linnet.rooms.relay_client.census import PATIENCE, RelayCensus
from linnet.rooms.relay_statements import HeldEvent, Reach, RelayStatement


class Moving(Circle):
    """Room of ann, bob and cid with the relay r0; r1 is to take its place, and may have limits."""

    limits = RelayConfig(policy=RelayPolicy.OPEN)

    def _config(self, name: str) -> PeerConfig:
        config = super()._config(name)
        return replace(config, relay=self.limits) if name == "r1" else config

    def compare(self, by: str = "ann") -> RelaysCompared:
        return self.get(by, CompareRelays(self.room, self.peer("r0"), self.peer("r1")), RelaysCompared)

    def compare_all(self, by: str = "ann", rounds: int = 20) -> RelaysCompared:
        found = self.compare(by)
        for _ in range(rounds):
            if found.read and found.compared and not found.lacks:
                break
            self.run(1.0)
            found = self.compare(by)
        return found


def moving(limits: RelayConfig | None = None, newcomers: Newcomers | None = None) -> Moving:
    class Limited(Moving):
        pass

    if limits is not None:
        Limited.limits = limits
    circle = Limited("ann", "bob", "cid", "dan", "r0", "r1")
    circle.found("ann", "bob", "cid", "r0", newcomers=newcomers)
    circle.run(10.0)
    circle.offline("bob")
    for number in range(30):
        circle.say("ann", f"ann {number}")
    circle.run(5.0)
    # Of this only the relay and cid know.
    circle.offline("ann")
    circle.run(2.0)
    circle.say("cid", "cid alone")
    circle.run(5.0)
    circle.offline("cid")
    circle.online("ann")
    circle.run(5.0)
    circle.get("ann", AddRelay(circle.room, circle.contact("r1")), Sent)
    circle.run(5.0)
    return circle


def test_what_the_old_relay_holds_is_at_the_new_one_before_the_old_one_goes() -> None:
    circle = moving()
    assert circle.compare().wanted > 30
    circle.run(1.0)
    first = circle.compare()
    assert (first.compared, first.read) == (True, True)
    assert first.lacks >= 31  # All messages, of which the new relay was never told.
    found = circle.compare_all()
    assert (found.compared, found.read, found.lacks, found.lacking) == (True, True, 0, ())
    assert found.held == found.wanted > 31
    assert (found.old_signs, found.new_signs, found.reasons) == (True, True, {})
    circle.get("ann", DropRelay(circle.room, circle.peer("r0")), Sent)
    circle.run(5.0)
    made = circle.ticket("ann")
    circle.offline("r0", "ann")
    # Somebody new finds the new relay alone, and all that was said there.
    circle.get("dan", JoinRoom(circle.room, made.ticket, made.contacts), RoomMade)
    circle.read("dan")
    circle.run(30.0)
    assert sorted(circle.heard("dan")) == sorted([*(f"ann {n}" for n in range(30)), "cid alone"])


def test_operations_on_keys_are_brought_too() -> None:
    circle = moving(newcomers=Newcomers.FROM_NOW)
    found = circle.compare_all()
    assert (found.compared, found.lacks) == (True, 0)
    held = []
    for name in ("r0", "r1"):
        relay = circle.rooms(name)._relay
        assert relay is not None
        shelf = relay._rooms[circle.room].cache.shelf
        held.append(len(shelf))
    assert held[0] == held[1] > 3


def test_an_interrupted_move_goes_on_where_it_is_asked_for_again() -> None:
    circle = moving()
    assert circle.compare().lacks or not circle.compare().read
    circle.offline("ann", "r1")
    circle.online("ann", "r1")
    circle.run(5.0)
    assert circle.compare_all().lacks == 0


def test_without_the_old_relay_what_we_have_is_brought_and_the_answer_says_so() -> None:
    circle = moving()
    circle.offline("r0")
    circle.run(1.0)
    found = circle.compare_all(rounds=10)
    assert (found.compared, found.old_up, found.read, found.lacks) == (False, False, True, 0)
    assert found.held > 31


def test_a_new_relay_without_room_is_told_with_the_events_that_it_lacks() -> None:
    circle = moving(RelayConfig(policy=RelayPolicy.OPEN, sender_bytes=2000))
    found = circle.compare_all(rounds=10)
    assert found.compared
    assert found.read
    assert found.lacks > 10
    assert len(found.lacking) == found.lacks
    assert found.reasons == {Reason.QUOTA.value: found.lacks}
    assert found.held + found.lacks == found.wanted


def test_a_relay_that_refuses_by_the_rules_what_nobody_keeps_blocks_nothing() -> None:
    circle = moving()
    found = circle.compare_all()
    assert found.lacks == 0
    census = circle.room_at("ann").relays.census
    assert census is not None
    census._ours[next(iter(census.at_new.held))] = None
    stranger = type(next(iter(census.at_new.held)))(bytes(32))
    census._ours[stranger] = None
    assert census.lacking() == [stranger]
    census.at_new.refused[stranger] = Reason.NOT_ALLOWED
    assert census.lacking() == []
    census.at_new.refused[stranger] = Reason.QUOTA
    assert census.lacking() == [stranger]
    census.at_new.refused[stranger] = Reason.NOT_ALLOWED
    census.at_old.held[stranger] = None
    assert census.lacking() == [stranger]


def test_a_comparison_that_nobody_asks_for_ends_and_frees_the_relays() -> None:
    circle = moving()
    circle.compare_all()
    client = circle.room_at("ann").relays
    assert sorted(client.chosen) == sorted((circle.peer("r0"), circle.peer("r1")))
    circle.run(PATIENCE + 1.0)
    assert client.census is None
    assert len(client.chosen) == 1


def test_only_relays_of_the_room_can_be_compared() -> None:
    circle = moving()
    r0, bob = circle.peer("r0"), circle.peer("bob")
    assert circle.declined("ann", CompareRelays(circle.room, r0, bob)).reason is Reason.NOT_A_RELAY
    assert circle.declined("ann", CompareRelays(circle.room, r0, r0)).reason is Reason.IN_USE


OLD, NEW = relay_id(0), relay_id(1)


def shown(after: int, upto: int, *numbers: int, more: bool = False) -> ResyncPage:
    held = tuple(HeldEvent(event_id(number), number, False) for number in numbers)
    reach = Reach(after, upto, 0, ())
    said = RelayStatement(b"line one", 9, bytes(32), (), 0, held, (), reach, bytes(64))
    return replace(page(1, (), cursor(upto), more), said=said)


def note(census: RelayCensus, relay: PeerId, given: ResyncPage, *keys: int) -> None:
    census.note_page(relay, given, given.said, map(event_id, keys))


def test_what_only_the_old_relay_holds_is_wanted_and_so_are_its_operations_on_keys() -> None:
    census = RelayCensus(OLD, NEW, [event_id(1)])
    note(census, OLD, shown(0, 9, 2), 3)
    assert list(census.wanted()) == [event_id(number) for number in (1, 2, 3)]
    note(census, NEW, shown(0, 9, 1), 3)
    assert census.lacking() == [event_id(2)]


def test_a_relay_is_read_to_its_end_only_by_pages_without_a_gap() -> None:
    census = RelayCensus(OLD, NEW, [])
    note(census, OLD, shown(0, 5, 1, more=True))
    assert not census.at_old.is_whole
    note(census, OLD, shown(7, 9, 8))
    assert not census.at_old.is_whole  # Nobody has signed what is between 5 and 7.
    pushed = replace(shown(5, 9, 8), after=cursor(5))
    note(census, OLD, pushed)
    assert not census.at_old.is_whole
    note(census, OLD, shown(9, 9))
    assert census.at_old.is_whole
    assert event_id(8) in census.at_old


def test_only_what_is_signed_counts_as_held_apart_from_operations_on_keys() -> None:
    census = RelayCensus(OLD, NEW, [event_id(1), event_id(2)])
    unsigned = replace(shown(0, 9, 1), said=None)
    note(census, NEW, unsigned)
    outcomes = tuple(RelayOutcome(event_id(number), cursor(number), None, ()) for number in (1, 2))
    census.note_answer(NEW, RelayTaken(ROOM, 1, outcomes, None), None)
    assert census.lacking() == [event_id(1), event_id(2)]
    said = shown(0, 9, 1).said
    census.note_answer(NEW, RelayTaken(ROOM, 2, outcomes, None), said)
    assert census.lacking() == []
    assert (list(census.at_new.held), list(census.at_new.keys)) == ([event_id(1)], [event_id(2)])


def test_an_event_that_was_refused_first_and_is_taken_later_is_held() -> None:
    census = RelayCensus(OLD, NEW, [event_id(1)])
    refused = (RelayOutcome(event_id(1), None, Reason.QUOTA, ()),)
    census.note_answer(NEW, RelayTaken(ROOM, 1, refused, None), None)
    assert (census.lacking(), census.at_new.refused) == ([event_id(1)], {event_id(1): Reason.QUOTA})
    taken = (RelayOutcome(event_id(1), cursor(1), None, ()),)
    census.note_answer(NEW, RelayTaken(ROOM, 2, taken, None), shown(0, 9, 1).said)
    assert (census.lacking(), census.at_new.refused) == ([], {})
