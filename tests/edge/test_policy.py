"""Which topics may be spoken of where: nothing, unless somebody allowed it."""

from __future__ import annotations

import pytest

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.edge.lan_keys import CORE, network_id
from linnet.edge.policy import MOST_SWITCHES, LanPolicy
from linnet.store.memory import MemoryStore

A, B = TopicId(b"a" * 32), TopicId(b"b" * 32)
CAFE, HOME = network_id([b"cafe"]), network_id([b"home"])


def test_off_is_the_default_everywhere_but_on_the_internet() -> None:
    policy = LanPolicy(MemoryStore().cells)
    assert not policy.is_allowed(A, HOME)
    assert policy.allowed(HOME) == ()
    assert policy.is_allowed(A, CORE)
    assert policy.networks == {}


def test_a_topic_is_allowed_on_one_network_and_on_no_other() -> None:
    policy = LanPolicy(MemoryStore().cells)
    policy.allow(A, HOME)
    policy.allow(B, HOME)
    policy.allow(B, CAFE)
    assert policy.allowed(HOME) == (A, B)
    assert policy.allowed(CAFE) == (B,)
    assert not policy.is_allowed(A, CAFE)
    policy.deny(B, HOME)
    policy.deny(B, HOME)
    assert policy.allowed(HOME) == (A,)
    assert policy.allowed(CAFE) == (B,)


def test_switches_and_names_survive_a_restart() -> None:
    cells = MemoryStore().cells
    policy = LanPolicy(cells)
    policy.allow(A, HOME, "the attic")
    policy.allow(B, CAFE, "the café")
    policy.deny(B, CAFE)
    policy.deny(B, CORE)
    again = LanPolicy(cells)
    assert again.allowed(HOME) == (A,)
    assert again.networks == {HOME: "the attic"}
    assert again.denied(CORE) == (B,)


def test_a_topic_may_be_kept_to_local_networks() -> None:
    policy = LanPolicy(MemoryStore().cells)
    policy.deny(A, CORE)
    assert not policy.is_allowed(A, CORE)
    assert policy.is_allowed(B, CORE)
    policy.allow(A, CORE)
    assert policy.is_allowed(A, CORE)


def test_there_is_a_bound() -> None:
    policy = LanPolicy(MemoryStore().cells)
    for number in range(MOST_SWITCHES):
        policy.allow(TopicId(number.to_bytes(32, "big")), HOME)
    policy.allow(TopicId(bytes(32)), HOME)
    with pytest.raises(Refused) as refusal:
        policy.allow(A, HOME)
    assert refusal.value.reason is Reason.TOO_MANY
    assert policy.allowed(CAFE) == ()
