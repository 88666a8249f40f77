from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.groups.chains import (
    AHEAD,
    BEHIND,
    OLD_EPOCHS,
    OLD_SECONDS,
    MemberChains,
    debt,
    message_key,
    prune,
    start,
    take,
)
from linnet.groups.labels import MemberId

GROUP, MEMBER, ROOT = b"g" * 32, MemberId(b"m" * 16), b"r" * 32
NOW = 1000.0


def keys(count: int, epoch: int = 1, root: bytes = ROOT) -> list[bytes]:
    out, chain = [], root
    for index in range(count):
        key, chain = message_key(GROUP, MEMBER, epoch, index, chain)
        out.append(key)
    return out


def begun() -> MemberChains:
    return start(None, 1, ROOT, 0, NOW)


def refusal(chains: MemberChains, epoch: int, index: int) -> Reason:
    with pytest.raises(RemoteError) as caught:
        take(chains, GROUP, MEMBER, epoch, index)
    return caught.value.reason


def test_no_two_messages_have_one_key() -> None:
    every = [*keys(50), *keys(50, 2), *keys(50, 1, b"s" * 32)]
    assert len({key[:32] for key in every}) == len({key[32:] for key in every}) == 150


def test_a_key_is_of_one_group_member_epoch_and_number() -> None:
    other = MemberId(b"n" * 16)
    places = [(GROUP, MEMBER, 1, 0), (b"h" * 32, MEMBER, 1, 0), (GROUP, other, 1, 0), (GROUP, MEMBER, 2, 0)]
    made = [message_key(*place, ROOT) for place in (*places, (GROUP, MEMBER, 1, 1))]
    assert len({key for key, _ in made}) == len({chain for _, chain in made}) == len(made)


@given(st.permutations(range(12)))
def test_messages_open_in_any_order_and_once(order: list[int]) -> None:
    chains, known = begun(), keys(12)
    for index in order:
        chains, key = take(chains, GROUP, MEMBER, 1, index)
        assert key == known[index]
        assert refusal(chains, 1, index) is Reason.KEY_SPENT
    assert debt(chains) == 0


def test_a_key_is_gone_once_it_was_used() -> None:
    chains, known = begun(), keys(5)
    for index in (2, 0, 1):
        chains, _ = take(chains, GROUP, MEMBER, 1, index)
    kept = [chains.chains[0].key, *chains.chains[0].skipped.values()]
    assert not any(key in known[:3] or key == ROOT for key in kept)


def test_how_far_ahead_and_behind() -> None:
    chains = begun()
    assert refusal(chains, 1, AHEAD) is Reason.KEY_MISSING
    chains, _ = take(chains, GROUP, MEMBER, 1, AHEAD - 1)
    assert debt(chains) == BEHIND
    take(chains, GROUP, MEMBER, 1, AHEAD - 1 - BEHIND)
    assert refusal(chains, 1, AHEAD - 2 - BEHIND) is Reason.KEY_SPENT


def test_an_epoch_goes_when_all_of_it_has_come() -> None:
    chains, _ = take(begun(), GROUP, MEMBER, 1, 1)
    chains = start(chains, 2, b"s" * 32, 3, NOW)
    assert debt(chains) == 2  # The skipped key, and the chain for the last one.
    assert refusal(chains, 1, 3) is Reason.WRONG_EPOCH
    chains, _ = take(chains, GROUP, MEMBER, 1, 2)
    chains, _ = take(chains, GROUP, MEMBER, 1, 0)
    assert debt(chains) == 0
    assert [chain.epoch for chain in chains.chains] == [2]
    assert refusal(chains, 1, 0) is Reason.KEY_SPENT


def test_old_epochs_are_few_and_not_old() -> None:
    chains = begun()
    for epoch in range(2, 9):
        chains = start(chains, epoch, ROOT, 1, NOW + epoch)
    assert [chain.epoch for chain in chains.chains] == [5, 6, 7, 8]
    assert len(chains.chains) == OLD_EPOCHS + 1
    assert prune(chains, NOW + 6 + OLD_SECONDS) == prune(chains, NOW + OLD_SECONDS) == chains
    later = prune(chains, NOW + 7.5 + OLD_SECONDS)
    assert [chain.epoch for chain in later.chains] == [7, 8]
    assert [chain.epoch for chain in prune(chains, NOW + 2 * OLD_SECONDS).chains] == [8]


def test_why_an_epoch_has_no_keys() -> None:
    chains = start(start(None, 5, ROOT, 0, NOW), 8, ROOT, 0, NOW)
    assert refusal(chains, 4, 0) is Reason.BEFORE_JOINING
    assert refusal(chains, 5, 0) is Reason.KEY_SPENT
    assert refusal(chains, 9, 0) is Reason.WRONG_EPOCH
