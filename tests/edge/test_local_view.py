"""The nodes of one network: who is believed, how many, for how long."""

from __future__ import annotations

import pytest

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.edge.announcement import lan_hint, make_announcement
from linnet.edge.config import PresenceConfig
from linnet.edge.presence import LocalView
from linnet.identity.keys import SigningKey

CONFIG = PresenceConfig()
OURS = bytes(32)


def key(number: int) -> SigningKey:
    return SigningKey(number.to_bytes(32, "big"))


def said(number: int, nonce: bytes = b"nonce---", port: int = 4711) -> bytes:
    return make_announcement(key(number), port, nonce)


def refusal(view: LocalView, source: str, datagram: bytes, now: float = 0.0) -> Reason:
    with pytest.raises(RemoteError) as error:
        view.handle_announcement(source, datagram, OURS, now)
    return error.value.reason


def test_whoever_is_heard_is_there_at_the_address_it_came_from() -> None:
    view = LocalView(CONFIG, 0.0)
    entry = view.handle_announcement("10.0.0.1", said(1), OURS, 0.0)
    assert entry is not None
    assert entry.hints == (lan_hint(key(1).public, "10.0.0.1", 4711),)
    assert view.handle_announcement("10.0.0.1", said(1), OURS, 1.0) is None, "nothing new"
    assert view.handle_announcement("fe80::1%eth0", said(1), OURS, 1.0) is entry, "at one more address"
    assert len(entry.hints) == 2


def test_our_own_is_no_news() -> None:
    view = LocalView(CONFIG, 0.0)
    assert view.handle_announcement("10.0.0.1", said(1), key(1).public, 0.0) is None
    assert view.entries == {}


def test_a_signature_is_checked_once_for_a_key_and_nonce() -> None:
    view = LocalView(CONFIG, 0.0)
    for second in range(20):
        view.handle_announcement("10.0.0.1", said(1), OURS, float(second))
    assert view.checked == 1
    view.handle_announcement("10.0.0.1", said(1, b"another-"), OURS, 20.0)
    assert view.checked == 2


def test_forged_and_changed_announcements_are_refused() -> None:
    view = LocalView(CONFIG, 0.0)
    forged = said(1)[:-1] + bytes([said(1)[-1] ^ 1])
    assert refusal(view, "10.0.0.9", forged) is Reason.BAD_SIGNATURE
    assert view.entries == {}
    view.handle_announcement("10.0.0.1", said(1), OURS, 0.0)
    assert refusal(view, "10.0.0.9", forged) is Reason.REPEATED_NONCE
    assert refusal(view, "10.0.0.9", said(1, port=99)) is Reason.REPEATED_NONCE
    assert view.checked == 2, "a nonce that is known costs no check"
    assert refusal(view, "10.0.0.9", b"junk") is Reason.MALFORMED


def test_who_is_not_heard_is_gone_after_four_periods() -> None:
    view = LocalView(CONFIG, 0.0)
    view.handle_announcement("10.0.0.1", said(1), OURS, 0.0)
    view.handle_announcement("10.0.0.2", said(2), OURS, 0.0)
    view.handle_announcement("10.0.0.2", said(2), OURS, 19.0)
    assert view.next_look_at(0.0) == 15.0
    assert view.next_look_at(19.0) == 20.0
    assert view.drop_expired(19.9) == []
    [gone] = view.drop_expired(20.0)
    assert gone.lan == key(1).public
    assert view.next_look_at(20.0) == 34.0
    assert [entry.lan for entry in view.drop_expired(39.0)] == [key(2).public]
    assert view.next_look_at(39.0) is None


def test_who_was_met_is_looked_for_before_it_is_forgotten() -> None:
    view = LocalView(CONFIG, 0.0)
    one, two = (
        view.handle_announcement("10.0.0.1", said(1), OURS, 0.0),
        view.handle_announcement("10.0.0.2", said(2), OURS, 0.0),
    )
    assert one is not None
    assert two is not None
    one.peer = PeerId(b"p" * 32)
    assert view.find_silent(14.9) == []
    assert view.find_silent(15.0) == [one], "nobody looks for who was never met"
    assert view.next_look_at(15.0) == 15.0
    one.is_doubted = True
    assert view.find_silent(15.0) == []
    assert view.next_look_at(15.0) == 20.0
    assert view.note_met(one.lan, 16.0) is one
    assert view.drop_expired(20.0) == [two]
    assert view.next_look_at(20.0) == 31.0
    assert view.find_silent(31.0) == [one], "and again, if it falls silent again"


def test_an_address_that_fell_silent_is_dialled_no_more() -> None:
    view = LocalView(CONFIG, 0.0)
    entry = view.handle_announcement("10.0.0.1", said(1), OURS, 0.0)
    assert entry is not None
    view.handle_announcement("10.0.0.2", said(1), OURS, 15.0)
    view.drop_expired(21.0)
    assert entry.hints == (lan_hint(key(1).public, "10.0.0.2", 4711),)


def test_a_new_announcement_replaces_the_old_addresses() -> None:
    view = LocalView(CONFIG, 0.0)
    view.handle_announcement("10.0.0.1", said(1), OURS, 0.0)
    entry = view.handle_announcement("10.0.0.7", said(1, b"tomorrow", 99), OURS, 1.0)
    assert entry is not None
    assert entry.hints == (lan_hint(key(1).public, "10.0.0.7", 99),)


def test_one_address_is_taken_at_its_rate() -> None:
    view = LocalView(CONFIG, 0.0)
    refused: list[Reason] = []
    for number in range(1000):
        try:
            view.handle_announcement("10.0.0.1", said(1), OURS, number / 100.0)
        except RemoteError as error:
            refused.append(error.reason)
    assert set(refused) == {Reason.FLOODING}
    assert 1000 - len(refused) == CONFIG.burst + 10 * CONFIG.rate - 1


def test_all_addresses_together_are_bounded_too() -> None:
    view = LocalView(PresenceConfig(total_rate=10.0), 0.0)
    for number in range(10):
        view.handle_announcement(f"10.0.0.{number}", said(number), OURS, 0.0)
    assert refusal(view, "10.0.0.99", said(99)) is Reason.FLOODING
    assert view.checked == 10
    view.handle_announcement("10.0.0.99", said(99), OURS, 1.0)


def test_nodes_of_one_address_are_bounded() -> None:
    view = LocalView(PresenceConfig(source_entries=3), 0.0)
    for number in range(3):
        view.handle_announcement("10.0.0.1", said(number), OURS, 0.0)
    assert refusal(view, "10.0.0.1", said(3)) is Reason.TOO_MANY
    view.handle_announcement("10.0.0.2", said(3), OURS, 0.0)


def test_addresses_of_one_node_are_bounded() -> None:
    view = LocalView(CONFIG, 0.0)
    for number in range(4):
        view.handle_announcement(f"10.0.0.{number}", said(1), OURS, 0.0)
    assert refusal(view, "10.0.0.5", said(1)) is Reason.TOO_MANY


def test_a_full_view_keeps_those_who_were_met() -> None:
    view = LocalView(PresenceConfig(entries=3), 0.0)
    entries = [view.handle_announcement(f"10.0.0.{number}", said(number), OURS, 0.0) for number in range(3)]
    assert refusal(view, "10.0.0.4", said(4)) is Reason.TOO_MANY
    for entry in entries[:2]:
        assert entry is not None
        entry.peer = PeerId(entry.lan)
    assert entries[2] is not None
    entries[2].failures = 1
    view.handle_announcement("10.0.0.4", said(4), OURS, 0.0)
    assert list(view.entries) == [key(0).public, key(1).public, key(4).public]
    view.note_met(key(5).public, 0.0).peer = PeerId(b"p" * 32)
    assert list(view.entries) == [key(0).public, key(1).public, key(5).public]
    with pytest.raises(RemoteError) as full:
        view.note_met(key(6).public, 0.0)
    assert full.value.reason is Reason.TOO_MANY
