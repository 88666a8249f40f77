"""A guest's keys: what waits goes on when they come, across restarts, and what is false is named."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.places.sealed.scene import NOW, PLACE, Node, Voice
from tests.raised import reason_of

from linnet.core.errors import RemoteError, StoreError
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.groups.prekeys import DAY
from linnet.places.sealed.guest_keys import LIFE
from linnet.places.sealed.key_boxes import Box, decode_boxes, encode_boxes


def test_what_comes_before_its_key_waits_also_across_a_restart() -> None:
    voice, ann = Voice(), Node("ann")
    voice.turn()
    told = voice.welcome(ann)
    said = [voice.say(b"one"), voice.say(b"two")]
    assert told is not None
    assert [ann.take(each) for each in said] == [None, None]
    numbers = [each[1].message for each in said]
    assert list(ann.opening.locked) == numbers
    assert [each.reason for each in ann.opening.noted] == [Reason.KEY_MISSING], "once for an epoch"
    again = Node("ann", ann.store)
    assert list(again.opening.locked) == numbers
    assert again.opening.is_locked(numbers[0])
    assert again.take(told) == numbers
    assert not again.opening.locked
    assert [again.read(number) for number in numbers] == [b"one", b"two"]
    assert not Node("ann", ann.store).opening.locked


def test_keys_of_another_epoch_do_not_free_what_waits_for_this_one() -> None:
    voice, ann = Voice(), Node("ann")
    voice.turn()
    voice.welcome(ann)
    early = voice.say(b"early")
    voice.generation = 1
    second = voice.turn()
    assert second is not None
    assert ann.take(early) is None
    assert ann.take(second) == [early[1].message], "it is tried"
    assert ann.read(early[1].message) is None
    assert ann.opening.locked == (early[1].message,), "and waits again"


def test_prekeys_stay_and_are_renewed_in_time() -> None:
    ann = Node("ann")
    first = ann.opening.prekeys(NOW)
    assert ann.opening.prekeys(NOW + DAY) == first
    assert Node("ann", ann.store).opening.prekeys(NOW + DAY) == first
    second = ann.opening.prekeys(NOW + 0.7 * LIFE)
    assert second != first
    voice = Voice()
    voice.turn()
    voice.sealing.learn(ann.device, first)
    old = voice.keys(voice.sealing.for_one(1, voice.next, ann.device, 0, NOW))
    assert old is not None
    ann.take(old)
    assert ann.take(voice.say(b"by the old ones")) == b"by the old ones"


def test_a_cohost_learns_the_prekeys_of_guests() -> None:
    voice, ann, ben = Voice(), Node("ann"), Node("ben")
    voice.turn()
    told = voice.welcome(ann)
    assert told is not None
    assert ben.take(told, learns=True) == []
    assert ben.sealing.readers.all() == [ann.device]
    other = Node("cat")
    other.take(told)
    assert other.sealing.readers.all() == []


def test_a_box_that_does_not_open_is_named() -> None:
    voice, ann = Voice(), Node("ann")
    voice.turn()
    voice.sealing.learn(ann.device, ann.opening.prekeys(NOW))
    body = voice.sealing.for_one(1, voice.next, ann.device, 0, NOW)
    assert body is not None
    identity, (box,) = decode_boxes(body)
    broken = Box(box.device, box.keys, box.prekeys, box.sealed[:-1] + bytes([box.sealed[-1] ^ 1]))
    told = voice.keys(encode_boxes(identity, [broken]))
    assert told is not None
    assert ann.take(told) == []
    (noted,) = ann.opening.noted
    assert noted.reason is Reason.UNDECRYPTABLE
    garbage = voice.keys(b"garbage")
    assert garbage is not None
    ann.take(garbage)
    assert ann.opening.noted[-1].reason is Reason.MALFORMED


def test_a_piece_that_the_voice_sealed_wrongly_is_named() -> None:
    voice = Voice()
    voice.turn()
    said = voice.say(b"words")
    row = voice.fragments.get(said[1].fragment)
    assert row is not None
    event = said[0].events[0]
    false: Event = replace(event, tail=replace(event.tail, body=event.body[:-1] + b"x"))
    assert reason_of(RemoteError, voice.opening.opened, false, row) is Reason.UNDECRYPTABLE


def test_more_than_can_wait_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linnet.places.sealed.guest_keys.MOST_LOCKED", 1)
    voice, ann = Voice(), Node("ann")
    voice.turn()
    for text in (b"one", b"two"):
        ann.take(voice.say(text))
    assert len(ann.opening.locked) == 1
    assert ann.opening.noted[-1].reason is Reason.QUEUE_FULL


def test_prekeys_that_cannot_be_read_are_not_shown() -> None:
    ann = Node("ann")
    ann.store.cells.put("place prekeys", PLACE, b"secret")
    with pytest.raises(StoreError) as caught:
        Node("ann", ann.store)
    assert "secret" not in str(caught.value)
