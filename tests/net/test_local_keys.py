"""The keys of local networks that the driver shows and dials."""

from __future__ import annotations

from tests.net.live import named_key

from linnet.edge.announcement import lan_hint, lan_key, network_id, node_secret
from linnet.net.local_keys import LocalKeys

DEVICE = named_key("device")
HOME, CAFE = network_id([b"home"]), network_id([b"cafe"])
THEIRS = bytes(range(32))
HINT = lan_hint(THEIRS, "10.0.0.1", 99)


def test_a_key_is_shown_while_we_are_called_so() -> None:
    keys = LocalKeys(DEVICE)
    assert keys.own(HOME) is None
    today = keys.enter(HOME, 7)
    assert today.key.public == lan_key(node_secret(DEVICE), HOME, 7).public
    tomorrow = keys.enter(HOME, 8)
    assert keys.own(HOME) is tomorrow
    keys.leave(today)
    assert keys.own(HOME) is tomorrow
    keys.leave(tomorrow)
    assert keys.own(HOME) is None


def test_only_what_was_heard_where_we_are_is_dialled() -> None:
    keys = LocalKeys(DEVICE)
    plain = "tls://10.0.0.1:1"
    assert keys.dialable((plain, HINT)) == (plain,)
    keys.learn(THEIRS, HOME)
    assert keys.dialable((plain, HINT)) == (plain,), "we are not there"
    own = keys.enter(HOME, 7)
    assert keys.dialable((plain, HINT)) == (plain, HINT)
    assert keys.own_for(THEIRS) is own
    assert keys.dialable(("lan://junk@10.0.0.1:99",)) == ()
    keys.leave(own)
    keys.enter(CAFE, 7)
    assert keys.dialable((HINT,)) == ()


def test_what_is_remembered_of_others_is_bounded() -> None:
    keys = LocalKeys(DEVICE)
    keys.enter(HOME, 7)
    keys.learn(THEIRS, HOME)
    for number in range(4096):
        keys.learn(number.to_bytes(32, "big"), HOME)
    assert keys.own_for(THEIRS) is None
    assert keys.own_for((4095).to_bytes(32, "big")) is not None
