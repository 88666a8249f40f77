from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.groups.group_world import GroupWorld, start

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.bodies import Keys, Remove, Update, decode_body
from linnet.groups.labels import Device, MemberId
from linnet.groups.notes import WeakFs
from linnet.groups.prekeys import LIFE
from linnet.groups.state import GroupConfig, encode_state


def refused(act: Callable[[], object]) -> Reason:
    with pytest.raises(Refused) as caught:
        act()
    return caught.value.reason


def test_nobody_who_may_not_hold_keys_is_told_any() -> None:
    world = start("ABC", "D")
    barred = {world.peers["C"].device, world.peers["D"].device}

    def may_hold(device: Device) -> bool:
        return device not in barred

    world.may_hold = may_hold
    before = encode_state(world.peers["A"].state)
    assert refused(lambda: world.update("A")) is Reason.SURPLUS
    assert refused(lambda: world.add("A", "D")) is Reason.SURPLUS
    assert refused(lambda: world.remove("A", "B")) is Reason.SURPLUS
    assert encode_state(world.peers["A"].state) == before
    world.remove("A", "C")
    world.update("A")
    assert refused(lambda: world.add("A", "D")) is Reason.SURPLUS
    outside = GroupWorld("ABC")
    outside.may_hold = may_hold
    assert refused(lambda: outside.create("A", "BC")) is Reason.SURPLUS


def test_an_operation_to_one_without_prekeys_fails_as_a_whole() -> None:
    world = GroupWorld("ABC", config=GroupConfig(one_time=8))
    missing = world.bundles.pop(world.peers["C"].device)
    before = encode_state(world.peers["A"].state)
    assert refused(lambda: world.create("A", "BC")) is Reason.MISSING_PREKEYS
    assert encode_state(world.peers["A"].state) == before
    world.bundles[world.peers["C"].device] = missing
    world.create("A", "BC")
    world.settle()
    # B and C have never told each other anything directly: they begin by prekeys.
    del world.bundles[world.peers["C"].device]
    before = encode_state(world.peers["B"].state)
    assert refused(lambda: world.update("B")) is Reason.MISSING_PREKEYS
    assert encode_state(world.peers["B"].state) == before
    world.remove("B", "C")


def test_prekeys_that_have_ended_are_not_used() -> None:
    world = start("AB", "C")
    world.now += LIFE + 1
    assert refused(lambda: world.add("A", "C")) is Reason.PREKEY_EXPIRED
    world.publish_keys("C")
    world.add("A", "C")


def test_prekeys_of_another_identity_are_not_used() -> None:
    world = start("ABC")
    world.bundles[world.peers["C"].device] = world.bundles[world.peers["A"].device]
    assert refused(lambda: world.update("B")) is Reason.MISSING_PREKEYS


def test_no_one_time_prekey_is_told() -> None:
    world = GroupWorld("AB", config=GroupConfig(one_time=0))
    world.create("A", "B")
    assert WeakFs(world.peers["B"].device) in world.peers["A"].notes


def test_prekeys_are_published_when_others_lack_them() -> None:
    world = GroupWorld("AB")
    peer = world.peers["A"]
    assert agreement.draft_keys(peer.state, peer.entropy, world.now) is None
    later = world.now + LIFE * 0.7
    draft = agreement.draft_keys(peer.state, peer.entropy, later)
    assert draft is not None
    body = decode_body(draft.body)
    assert isinstance(body, Keys)
    assert body.bundle.gen == 2
    state = agreement.sent(draft, EventId(b"e" * 32)).state
    assert agreement.draft_keys(state, peer.entropy, later) is None


def test_after_every_seed_there_are_new_prekeys_to_publish() -> None:
    world = start("ABC")
    world.renews = False
    peer, before = world.peers["A"], world.directory(world.peers["A"].device)
    assert before is not None
    for is_update in (True, False):
        content = decode_body((world.update("A") if is_update else world.remove("A", "C")).body)
        assert isinstance(content, Update | Remove)
        draft = agreement.draft_keys(peer.state, peer.entropy, world.now)
        assert draft is not None
        assert isinstance(draft.content, Keys)
        bundle = draft.content.bundle
        assert bundle.spk == content.spk
        assert bundle.opks[0][0] > before.opks[-1][0]
        peer.state = agreement.sent(draft, EventId(b"e" * 32)).state
        assert agreement.draft_keys(peer.state, peer.entropy, world.now) is None
        before = bundle
    later = world.now + LIFE * 0.7  # Without a seed for long: new ones beside the same prekey.
    draft = agreement.draft_keys(peer.state, peer.entropy, later)
    assert draft is not None
    assert isinstance(draft.content, Keys)
    assert draft.content.bundle.spk == before.spk


def test_a_draft_that_is_not_sent_changes_nothing() -> None:
    world = start("ABC", "D")
    peer, newcomer = world.peers["A"], world.peers["D"].device
    means, keys, before = world.means(peer), world.bundles[newcomer][0], encode_state(peer.state)
    agreement.draft_update(peer.state, means)
    assert agreement.draft_add(peer.state, newcomer, keys, means).deps == (keys,)
    agreement.draft_remove(peer.state, [world.peers["B"].id], means)
    agreement.draft_leave(peer.state)
    assert encode_state(peer.state) == before
    world.update("A")
    world.settle()
    world.say("A", "goes on")
    world.settle()
    assert "goes on" in world.peers["B"].read.values()


def test_who_was_removed_needs_other_prekeys_first() -> None:
    world = start("AB")
    world.renews = False
    world.remove("A", "B")
    world.settle()
    assert refused(lambda: world.create("B", "")) is Reason.MISSING_PREKEYS
    world.publish_keys("B")
    world.create("B", "")


def test_who_is_outside_does_nothing() -> None:
    world = start("AB", "C")
    assert refused(lambda: world.update("C")) is Reason.UNKNOWN_MEMBER
    assert refused(lambda: world.send("C", agreement.draft_leave(world.peers["C"].state)))
    assert refused(lambda: world.create("A", "B")) is Reason.DUPLICATE


def test_only_others_are_removed_and_only_who_is_there() -> None:
    world = start("ABC")
    peer = world.peers["A"]

    def remove(*targets: MemberId) -> object:
        return agreement.draft_remove(peer.state, targets, world.means(peer))

    assert refused(lambda: remove()) is Reason.NOT_ALLOWED
    assert refused(lambda: remove(peer.id)) is Reason.NOT_ALLOWED
    assert refused(lambda: remove(MemberId(b"x" * 16))) is Reason.UNKNOWN_MEMBER


def test_key_ages_tell_how_long_epochs_last() -> None:
    world = start("AB")
    world.now += 100
    world.update("A")
    world.settle()
    state = world.peers["A"].state
    ages = agreement.key_ages(state, world.now + 5)
    assert ages == {world.peers["A"].id: 5, world.peers["B"].id: 5}
    assert state.healed == world.now
