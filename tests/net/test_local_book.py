"""The keys of local networks that the driver shows and dials."""

from __future__ import annotations

from linnet.edge.hints import lan_hint
from linnet.edge.lan_keys import lan_key, network_id, node_secret
from linnet.net.local_book import LocalBook
from linnet.testing.live import named_key

DEVICE = named_key("device")
HOME, CAFE = network_id([b"home"]), network_id([b"cafe"])
THEIRS = bytes(range(32))
HINT = lan_hint(THEIRS, "10.0.0.1", 99)


def test_a_key_is_shown_while_we_are_called_so() -> None:
    book = LocalBook(DEVICE)
    assert book.own(HOME) is None
    today = book.enter(HOME, 7)
    assert today.key.public == lan_key(node_secret(DEVICE), HOME, 7).public
    tomorrow = book.enter(HOME, 8)
    assert book.own(HOME) is tomorrow
    book.leave(today)
    assert book.own(HOME) is tomorrow
    book.leave(tomorrow)
    assert book.own(HOME) is None


def test_only_what_was_heard_where_we_are_is_dialled() -> None:
    book = LocalBook(DEVICE)
    plain = "tls://10.0.0.1:1"
    assert book.dialable((plain, HINT)) == (plain,)
    book.learn(THEIRS, HOME)
    assert book.dialable((plain, HINT)) == (plain,), "we are not there"
    own = book.enter(HOME, 7)
    assert book.dialable((plain, HINT)) == (plain, HINT)
    assert book.own_for(THEIRS) is own
    assert book.dialable(("lan://junk@10.0.0.1:99",)) == ()
    book.leave(own)
    book.enter(CAFE, 7)
    assert book.dialable((HINT,)) == ()


def test_what_is_remembered_of_others_is_bounded() -> None:
    book = LocalBook(DEVICE)
    book.enter(HOME, 7)
    book.learn(THEIRS, HOME)
    for number in range(4096):
        book.learn(number.to_bytes(32, "big"), HOME)
    assert book.own_for(THEIRS) is None
    assert book.own_for((4095).to_bytes(32, "big")) is not None
