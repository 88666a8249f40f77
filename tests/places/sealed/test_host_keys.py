"""The voice: when epochs begin, who is told which keys, and that nothing is used twice."""

from __future__ import annotations

import pytest
from tests.places.sealed.scene import NOW, PLACE, Node, Voice

from linnet.core.errors import Refused, StoreError
from linnet.core.reasons import Reason
from linnet.places.sealed import epoch_keys
from linnet.places.sealed.guest_keys import LIFE
from linnet.places.sealed.host_keys import HostKeys
from linnet.places.sealed.key_boxes import decode_boxes


def test_an_epoch_begins_with_every_term_and_behind_every_removal() -> None:
    voice = Voice()
    assert voice.sealing.is_due(1, 0)
    with pytest.raises(Refused):
        voice.sealing.step()
    voice.turn()
    assert not voice.sealing.is_due(1, 0)
    assert voice.sealing.is_due(1, 1)
    assert voice.sealing.is_due(2, 0)
    after = HostKeys(voice.context, voice.fragments, voice.ring)
    assert not after.is_due(1, 0), "it goes on after a restart"


def test_an_epoch_that_has_no_steps_left_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linnet.places.sealed.host_keys.STEPS", 3)
    voice = Voice()
    voice.turn()
    voice.sealing.step()
    voice.sealing.step()
    assert not voice.sealing.is_due(1, 0)
    voice.sealing.step()
    assert voice.sealing.is_due(1, 0)
    assert epoch_keys.STEPS > 3


def test_a_newcomer_reads_from_its_entry_on_and_not_what_was_before() -> None:
    voice, ann = Voice(), Node("ann")
    voice.turn()
    before = voice.say(b"before")
    told = voice.welcome(ann)
    assert told is not None
    assert ann.take(told) == []
    assert ann.take(voice.say(b"after")) == b"after"
    assert ann.take(before) is None, "though somebody handed it over"


def test_a_newcomer_to_whom_the_past_is_open_reads_all_of_it() -> None:
    voice, ann = Voice(), Node("ann")
    past = []
    for generation in range(4):
        voice.generation = generation
        voice.turn()
        past.append(voice.say(f"in {generation}".encode()))
        voice.sealing.step()
        past.append(voice.say(f"later in {generation}".encode()))
    told = voice.welcome(ann, since=0)
    assert told is not None
    ann.take(told)
    assert [ann.take(each) for each in past] == [
        text for generation in range(4) for text in (b"in %d" % generation, b"later in %d" % generation)
    ]


def test_the_past_opens_exactly_as_far_as_it_is_told() -> None:
    voice = Voice()
    said = []
    for generation in range(3):
        voice.generation = generation
        voice.turn()
        for _ in range(2):
            voice.sealing.step()
            said.append(voice.say(b"words"))
    for first in range(len(said)):
        guest = Node("ann")
        told = voice.welcome(guest, since=said[first][1].message)
        assert told is not None
        guest.take(told)
        readable = [guest.take(each) == b"words" for each in said]
        assert readable == [number >= first for number in range(len(said))]
        voice.sealing.readers.forget(guest.device.author)


def test_who_is_out_is_told_nothing_and_the_others_are() -> None:
    voice, ann, ben = Voice(), Node("ann"), Node("ben")
    voice.turn()
    for guest in (ann, ben):
        told = voice.welcome(guest)
        assert told is not None
        for each in (ann, ben):
            each.take(told)
    voice.sealing.readers.forget(ben.device.author)
    voice.generation = 1
    told = voice.turn()
    assert told is not None
    assert [box.device for box in decode_boxes(told[0].events[0].body)[1]] == [ann.device]
    secret = voice.say(b"without ben")
    for guest in (ann, ben):
        guest.take(told)
    assert ann.take(secret) == b"without ben"
    assert ben.take(secret) is None


def test_after_a_crash_no_two_fragments_have_one_key() -> None:
    voice = Voice()
    voice.turn()
    voice.say(b"one")
    voice.store.commit(lambda: None)
    lost = voice.say(b"said and not written down")
    voice.store.rollback()
    again = Voice(store=voice.store, life=1)
    other = again.say(b"another in its stead")
    assert lost[1] == other[1], "the same numbers"
    assert lost[0].events[0].body[:12] == other[0].events[0].body[:12], "the same epoch and step"
    assert lost[0].events[0].body[12:20] != other[0].events[0].body[12:20], "another guard"
    assert again.read(other[1].message) == b"another in its stead"


def test_a_device_whose_prekeys_have_ended_is_passed_over_and_written_down() -> None:
    voice, ann = Voice(), Node("ann")
    voice.turn()
    voice.welcome(ann)
    voice.sealing.begin(1, 1, voice.next)
    late = voice.sealing.for_all(1, voice.next, lambda nym: True, NOW + LIFE + 10)
    assert late is None
    (noted,) = voice.sealing.noted
    assert noted.reason is Reason.PREKEY_EXPIRED


def test_prekeys_that_are_none_are_written_down() -> None:
    voice, ann = Voice(), Node("ann")
    assert not voice.sealing.learn(ann.device, b"none")
    assert not voice.sealing.learn(voice.device, ann.opening.prekeys(NOW)), "the voice itself"
    (noted,) = voice.sealing.noted
    assert noted.reason is Reason.MALFORMED


def test_keys_that_cannot_be_read_are_not_shown() -> None:
    voice = Voice()
    voice.store.cells.put("place sealing", PLACE, b"secret")
    with pytest.raises(StoreError) as caught:
        Voice(store=voice.store)
    assert "secret" not in str(caught.value)
