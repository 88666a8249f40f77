"""The owner's side: who is told which key, and what a thief of the owner's device has."""

from __future__ import annotations

import pytest
from tests.delivery.voices import TOPIC
from tests.streams.sealed.hall import OWNER, Hall, device
from tests.streams.stage import NOW

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.groups.prekeys import LIFE
from linnet.streams.sealed import owner
from linnet.streams.sealed.owner import MOST_READERS, Sort, is_due


def allowed(hall: Hall, request: object, topic: TopicId = TOPIC) -> owner.Step:
    return owner.allow(
        hall.owning,
        owner.Place(topic, OWNER, hall.number),
        request,  # type: ignore[arg-type]
        False,
        hall.entropy,
        hall.now,
    )


def test_the_first_reader_begins_the_first_epoch() -> None:
    hall = Hall()
    assert hall.owning.present is None
    number, told = hall.allow("ben")
    assert (told.sort, told.epoch, told.before, number) == (Sort.EPOCH, 1, None, 0)
    assert hall.owning.readers[b"".join(device("ben"))].since == 1


def test_another_reader_is_told_the_present_key_alone_or_a_new_one_with_all() -> None:
    hall = Hall()
    first, _ = hall.allow("ben")
    number, told = hall.allow("cat")
    assert (told.sort, told.epoch, told.before) == (Sort.ADMIT, 1, first)
    assert list(told.messages) == [device("cat")]
    _, fresh = hall.allow("eve", from_now=True)
    assert (fresh.sort, fresh.epoch, fresh.before) == (Sort.EPOCH, 2, number)
    assert sorted(fresh.messages) == sorted(map(device, ("ben", "cat", "eve")))


def test_whom_it_puts_out_is_told_nothing_more() -> None:
    hall = Hall()
    hall.allow("ben")
    hall.allow("cat")
    before = hall.key(1).key
    _, told = hall.put_out("ben")
    assert (told.sort, told.epoch) == (Sort.EPOCH, 2)
    assert list(told.messages) == [device("cat")]
    assert hall.key(2).key != before
    same, nobody = owner.without(hall.owning, lambda each: each == device("ben"))
    assert (same, nobody) == (hall.owning, ())


def test_an_epoch_is_due_when_there_is_none_or_its_time_is_over() -> None:
    hall = Hall()
    assert is_due(hall.owning, 100.0, NOW)
    hall.turn()
    assert not is_due(hall.owning, 100.0, NOW + 99.0)
    assert is_due(hall.owning, 100.0, NOW + 100.0)
    assert is_due(hall.owning, 100.0, NOW - 1.0), "a clock that went back makes no key last for ever"


def test_nobody_comes_in_by_a_line_that_is_not_for_it() -> None:
    hall = Hall()
    request = hall.ask("ben")
    with pytest.raises(Refused, match="another stream"):
        allowed(hall, request, TopicId(b"u" * 32))
    with pytest.raises(Refused, match="reads it anyway"):
        allowed(hall, hall.ask("ann"))
    hall.now += LIFE + 1
    with pytest.raises(Refused) as error:
        allowed(hall, request)
    assert error.value.reason is Reason.PREKEY_EXPIRED


def test_there_is_a_bound_to_readers() -> None:
    hall = Hall()
    hall.allow("ben")
    one = hall.owning.readers[b"".join(device("ben"))]
    many = {b"%040d" % number: one for number in range(MOST_READERS - 1)}
    hall.owning = owner.Owning(
        hall.owning.device,
        hall.owning.identity,
        1,
        hall.owning.keys,
        0,
        {**many, b"".join(device("ben")): one},
    )
    with pytest.raises(Refused) as error:
        allowed(hall, hall.ask("cat"))
    assert error.value.reason is Reason.GROUP_FULL
    assert allowed(hall, hall.ask("ben"))


def test_the_owner_keeps_no_secret_of_a_channel() -> None:
    """Who steals its state learns present keys, and none that is drawn after."""
    hall = Hall()
    hall.allow("ben")
    for _ in range(20):
        hall.turn()
    channel = hall.owning.readers[b"".join(device("ben"))].channel
    assert (channel.own, channel.received) == ((), None)


def test_nothing_secret_shows() -> None:
    hall = Hall()
    hall.allow("ben")
    assert repr(hall.owning) == "Owning(…)"
