"""Which topics may be spoken of where: nothing, unless somebody allowed it."""

from __future__ import annotations

import pytest

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.edge.announcement import CORE, network_id
from linnet.edge.lan_policy import MOST_SWITCHES, LanPolicy
from linnet.store.memory import MemoryStore

A, B = TopicId(b"a" * 32), TopicId(b"b" * 32)
CAFE, HOME = network_id([b"cafe"]), network_id([b"home"])


def test_off_is_the_default_everywhere_but_on_the_internet() -> None:
    policy = LanPolicy(MemoryStore().cells)
    assert not policy.is_allowed(A, HOME)
    assert policy.allowed_topics(HOME) == ()
    assert policy.is_allowed(A, CORE)
    assert policy.networks == {}


def test_a_topic_is_allowed_on_one_network_and_on_no_other() -> None:
    policy = LanPolicy(MemoryStore().cells)
    policy.allow_topic(A, HOME)
    policy.allow_topic(B, HOME)
    policy.allow_topic(B, CAFE)
    assert policy.allowed_topics(HOME) == (A, B)
    assert policy.allowed_topics(CAFE) == (B,)
    assert not policy.is_allowed(A, CAFE)
    policy.deny_topic(B, HOME)
    policy.deny_topic(B, HOME)
    assert policy.allowed_topics(HOME) == (A,)
    assert policy.allowed_topics(CAFE) == (B,)


def test_switches_and_names_survive_a_restart() -> None:
    cells = MemoryStore().cells
    policy = LanPolicy(cells)
    policy.allow_topic(A, HOME, "the attic")
    policy.allow_topic(B, CAFE, "the café")
    policy.deny_topic(B, CAFE)
    policy.deny_topic(B, CORE)
    again = LanPolicy(cells)
    assert again.allowed_topics(HOME) == (A,)
    assert again.networks == {HOME: "the attic"}
    assert again.denied_topics(CORE) == (B,)


def test_a_topic_may_be_kept_to_local_networks() -> None:
    policy = LanPolicy(MemoryStore().cells)
    policy.deny_topic(A, CORE)
    assert not policy.is_allowed(A, CORE)
    assert policy.is_allowed(B, CORE)
    policy.allow_topic(A, CORE)
    assert policy.is_allowed(A, CORE)


def test_there_is_a_bound() -> None:
    policy = LanPolicy(MemoryStore().cells)
    for number in range(MOST_SWITCHES):
        policy.allow_topic(TopicId(number.to_bytes(32, "big")), HOME)
    policy.allow_topic(TopicId(bytes(32)), HOME)
    with pytest.raises(Refused) as refusal:
        policy.allow_topic(A, HOME)
    assert refusal.value.reason is Reason.TOO_MANY
    assert policy.allowed_topics(CAFE) == ()
