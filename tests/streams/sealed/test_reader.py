"""The reader's side: which keys it gets, why it cannot read, and what a thief of its device can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.delivery.voices import TOPIC
from tests.streams.sealed.hall import OWNER, Hall, Told, device

from linnet.core.errors import RemoteError
from linnet.core.ids import DeviceId
from linnet.core.reasons import Reason
from linnet.groups.labels import Device
from linnet.groups.two_party import Incoming, receive
from linnet.streams.sealed import reader
from linnet.streams.sealed.message_format import Clear
from linnet.streams.sealed.owner import Place, context_of, party_of
from linnet.streams.sealed.reader import follows, stands_alone, why_not
from linnet.streams.sealed.vault import Reading


def clear(epoch: int, announced: int) -> Clear:
    return Clear(epoch, announced, bytes(4))


def test_a_reader_follows_from_its_admission_on() -> None:
    hall = Hall()
    hall.turn()
    hall.turn()
    for told in (hall.allow("ben"), hall.turn(), hall.allow("cat"), hall.turn()):
        assert stands_alone(told[1], device("ben")) or follows(hall.readings["ben"], OWNER.device, told[1])
        hall.hear("ben", told)
    assert hall.holds("ben") == [2, 3, 4]
    assert hall.readings["ben"].first == 2


def test_only_the_first_message_of_a_channel_needs_none_before_it() -> None:
    hall = Hall()
    first = hall.allow("ben")
    second = hall.turn()
    other = hall.allow("cat")
    assert stands_alone(first[1], device("ben"))
    assert not stands_alone(second[1], device("ben"))
    assert not stands_alone(other[1], device("ben"))
    assert stands_alone(hall.put_out("ben")[1], device("ben"))
    assert not follows(hall.readings["ben"], OWNER.device, second[1])
    hall.hear("ben", first)
    assert follows(hall.readings["ben"], OWNER.device, second[1])
    assert not follows(hall.readings["ben"], DeviceId(b"x" * 8), second[1])


def test_who_is_put_out_knows_it_and_comes_back_by_a_new_request() -> None:
    hall = Hall()
    hall.hear("ben", hall.allow("ben"), hall.put_out("ben"))
    ben = hall.readings["ben"]
    assert why_not(ben, OWNER.device, clear(2, ben.last or 0)) is Reason.NOT_A_MEMBER
    skipped = hall.turn()
    assert stands_alone(skipped[1], device("ben"))
    hall.hear("ben", hall.allow("ben", from_now=True))
    assert hall.holds("ben") == [1, 4]
    ben = hall.readings["ben"]
    assert why_not(ben, OWNER.device, clear(2, 0)) is Reason.BEFORE_JOINING


def test_a_new_request_changes_nothing_until_it_is_answered() -> None:
    hall = Hall()
    hall.hear("ben", hall.allow("ben"))
    hall.ask("ben")
    hall.ask("ben")
    assert len(hall.readings["ben"].accesses) == 2
    hall.hear("ben", hall.turn())
    assert hall.holds("ben") == [1, 2]
    hall.hear("ben", hall.allow("ben"), hall.turn())
    assert hall.holds("ben") == [1, 2, 3]
    assert len(hall.readings["ben"].accesses) == 1


def test_who_lost_its_state_knows_that_it_must_ask_anew() -> None:
    hall = Hall()
    told = hall.allow("ben")
    del hall.readings["ben"]
    hall.ask("ben")
    hall.hear("ben", told)
    ben = hall.readings["ben"]
    assert why_not(ben, OWNER.device, clear(1, told[0])) is Reason.DESYNCED
    hall.hear("ben", hall.allow("ben"))
    assert hall.holds("ben") == [1]


def test_why_something_cannot_be_read() -> None:
    hall = Hall()
    assert why_not(None, OWNER.device, clear(1, 0)) is Reason.NOT_A_MEMBER
    hall.turn()
    hall.turn()
    hall.ask("ben")
    asked = hall.readings["ben"]
    assert why_not(asked, OWNER.device, clear(2, 7)) is Reason.KEY_MISSING
    hall.hear("ben", hall.allow("ben"))
    ben = hall.readings["ben"]
    assert ben.last == 14
    assert why_not(ben, OWNER.device, clear(1, 0)) is Reason.BEFORE_JOINING
    assert why_not(ben, OWNER.device, clear(3, 21)) is Reason.KEY_MISSING
    assert why_not(ben, DeviceId(b"x" * 8), clear(1, 0)) is Reason.KEY_MISSING
    gone = Reading(ben.accesses, ben.sealer, ben.last, ben.first, None, ())
    assert why_not(gone, OWNER.device, clear(2, 14)) is Reason.KEY_SPENT


def test_another_device_of_the_owner_cannot_bar_anyone() -> None:
    hall = Hall()
    hall.hear("ben", hall.allow("ben"))
    _, foreign = hall.put_out("ben")
    ben = hall.readings["ben"]
    other = Device(OWNER.author, DeviceId(b"x" * 8))
    assert reader.take(ben, Place(TOPIC, other, 99), foreign, device("ben"), hall.now) is ben


def test_a_message_for_one_opens_for_no_other() -> None:
    hall = Hall()
    hall.ask("eve")
    _, told = hall.allow("ben")
    stolen = replace(told, messages={device("eve"): told.messages[device("ben")]})
    hall.hear("eve", (0, stolen))
    assert hall.holds("eve") == []


@given(st.lists(st.sampled_from(["turn", "allow", "put out", "ask"]), min_size=1, max_size=12))
def test_whoever_hears_all_has_the_keys_of_its_stays_and_no_others(deeds: list[str]) -> None:
    hall = Hall()
    hall.turn()
    hall.ask("ben")
    entitled: list[int] = []
    is_in = False
    for deed in deeds:
        if deed == "ask":
            hall.ask("ben")
            continue
        told = hall.turn() if deed == "turn" else (hall.allow if deed == "allow" else hall.put_out)("ben")
        is_in = (is_in or deed == "allow") and deed != "put out"
        if is_in and told[1].epoch not in entitled:
            entitled.append(told[1].epoch)
        known = hall.readings["ben"]
        if stands_alone(told[1], device("ben")) or follows(known, OWNER.device, told[1]):
            hall.hear("ben", told)
    assert hall.holds("ben") == entitled


def test_a_thief_of_a_reader_opens_no_announcement_of_before() -> None:
    """Forward secrecy from epoch to epoch: the secrets that opened the last one are gone."""
    hall = Hall()
    told = [hall.allow("ben"), hall.turn(), hall.turn()]
    hall.hear("ben", *told)
    (stolen,) = hall.readings["ben"].accesses
    for number, announcement in told:
        context = context_of(TOPIC, OWNER, device("ben"), announcement.epoch)
        message = announcement.messages[device("ben")]
        came = Incoming(party_of(TOPIC, OWNER), announcement.identity, context, message)
        with pytest.raises(RemoteError):
            receive(stolen.channel, stolen.prekeys, {}, came, hall.now)
        assert number <= (hall.readings["ben"].last or 0)


def test_a_thief_of_a_reader_reads_on_until_it_is_let_in_anew() -> None:
    """What it does not give: a stolen reader heals by new prekeys alone."""
    hall = Hall()
    hall.hear("ben", hall.allow("ben"))
    hall.readings["thief"] = hall.readings["ben"]

    def listens(told: Told) -> None:
        thief = hall.readings["thief"]
        hall.readings["thief"] = reader.take(
            thief, Place(TOPIC, OWNER, told[0]), told[1], device("ben"), hall.now
        )

    told = hall.turn()
    listens(told)
    hall.hear("ben", told)
    assert hall.holds("thief") == [1, 2]
    told = hall.allow("ben", from_now=True)
    listens(told)
    hall.hear("ben", told)
    assert (hall.holds("ben"), hall.holds("thief")) == ([1, 2, 3], [1, 2])


def test_nothing_secret_shows() -> None:
    hall = Hall()
    hall.hear("ben", hall.allow("ben"))
    assert repr(hall.readings["ben"]) == "Reading(…)"
