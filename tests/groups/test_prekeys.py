"""The life of prekeys: made, chosen, used, refused the second time, renewed, deleted."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack, structs

from linnet.core.errors import Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.groups.labels import PREKEY_CHOICE, MemberId, fields
from linnet.groups.prekeys import (
    DAY,
    GRACE,
    IN_FLIGHT,
    LIFE,
    MAX_GENERATION,
    MAX_ONE_TIME,
    MAX_ONE_TIME_ID,
    SKEW,
    Bundle,
    Prekeys,
    bundle_of,
    check_bundle,
    choose,
    decode_bundle,
    due,
    encode_bundle,
    make_prekeys,
    one_time_prekey,
    prune,
    renew,
    retire,
    signed_prekey,
    used,
)
from linnet.groups.primitives import key_pair, public_of
from linnet.sim.seeded_random import SeededEntropy

NOW = 1_750_000_000.0
ANN, BEN, CLEO = (MemberId(name.ljust(16, b".")) for name in (b"ann", b"ben", b"cleo"))


def made(count: int = 4, grace: int = GRACE, name: str = "owner") -> Prekeys:
    return make_prekeys(SeededEntropy(0, name), NOW, count, grace=grace)


def reason_of(failure: pytest.ExceptionInfo[RemoteError] | pytest.ExceptionInfo[Refused]) -> Reason:
    return failure.value.reason


# The bundle on the wire.


def test_a_bundles_fields_on_the_wire() -> None:
    data = encode_bundle(Bundle(b"\x11" * 32, 2, 3, 4, b"\x22" * 32, ((5, b"\x33" * 32),)))
    assert data.hex() == (
        "11" * 32 + "00000002" + "0000000000000003" + "0000000000000004" + "22" * 32
        + "0001" + "00000005" + "33" * 32
    )  # fmt: skip


GOOD = bundle_of(made(3, name="good"))
LOW = bytes(32)


@pytest.mark.parametrize(
    "bad",
    [
        structs.replace(GOOD, identity=LOW),
        structs.replace(GOOD, spk=b"\x01" + bytes(31)),
        structs.replace(GOOD, opks=(GOOD.opks[0], (2, LOW))),
        structs.replace(GOOD, gen=0),
        structs.replace(GOOD, gen=MAX_GENERATION + 1),
        structs.replace(GOOD, not_after=GOOD.not_before),
        structs.replace(GOOD, opks=GOOD.opks[::-1]),
        structs.replace(GOOD, opks=(GOOD.opks[0], GOOD.opks[0])),
        structs.replace(GOOD, opks=((0, GOOD.spk),)),
        structs.replace(GOOD, opks=tuple((number, GOOD.spk) for number in range(1, MAX_ONE_TIME + 2))),
    ],
)
def test_bundles_that_nobody_may_publish(bad: Bundle) -> None:
    with pytest.raises(RemoteError) as caught:
        decode_bundle(encode_bundle(bad))
    assert reason_of(caught) == Reason.MALFORMED


@given(st.binary(max_size=300))
def test_any_bytes_are_a_bundle_or_an_error_of_the_peer(data: bytes) -> None:
    try:
        bundle = decode_bundle(data)
    except RemoteError:
        return
    assert encode_bundle(bundle) == data


@given(st.integers(0, len(encode_bundle(GOOD)) - 1), st.integers(1, 255))
def test_a_changed_bundle_is_another_one_or_an_error(place: int, change: int) -> None:
    data = bytearray(encode_bundle(GOOD))
    data[place] ^= change
    try:
        bundle = decode_bundle(bytes(data))
    except RemoteError:
        return
    assert bundle != GOOD
    assert encode_bundle(bundle) == bytes(data)


def test_a_bundle_is_good_between_its_dates() -> None:
    for now in (NOW - SKEW, NOW, NOW + LIFE):
        check_bundle(GOOD, now)
    for now in (NOW - SKEW - 1, NOW + LIFE + 1):
        with pytest.raises(Refused) as caught:
            check_bundle(GOOD, now)
        assert reason_of(caught) == Reason.PREKEY_EXPIRED


# Which one-time prekey a member begins with.


def test_the_choice_is_by_the_hash_of_who_and_which_bundle() -> None:
    bundle = bundle_of(made(7))
    digest = hashlib.sha256(fields(PREKEY_CHOICE, ANN, bundle.gen.to_bytes(4, "big"))).digest()
    assert choose(bundle, ANN) == bundle.opks[int.from_bytes(digest, "big") % 7]


def test_a_used_one_is_not_chosen_again_until_none_is_left() -> None:
    bundle = bundle_of(made(5))
    spent: list[int] = []
    for _ in range(5):
        chosen = choose(bundle, ANN, spent)
        assert chosen is not None
        spent.append(chosen[0])
    assert sorted(spent) == [1, 2, 3, 4, 5]
    assert choose(bundle, ANN, spent) is None
    assert choose(bundle_of(made(0)), ANN) is None


def test_members_spread_over_a_bundle() -> None:
    bundle = bundle_of(made(64))
    chosen = Counter(choose(bundle, MemberId(number.to_bytes(16, "big"))) for number in range(64))
    assert len(chosen) > 32
    assert max(chosen.values()) < 8
    other = structs.replace(bundle, gen=bundle.gen + 1)
    moved = sum(
        choose(bundle, MemberId(number.to_bytes(16, "big")))
        != choose(other, MemberId(number.to_bytes(16, "big")))
        for number in range(64)
    )
    assert moved > 48


# The owner's side: use, grace, replay.


def test_nobody_uses_a_one_time_prekey_twice() -> None:
    prekeys = used(made(), 2, ANN, NOW)
    for later in (NOW, NOW + GRACE / 2):
        with pytest.raises(RemoteError) as caught:
            one_time_prekey(prekeys, 2, ANN, later)
        assert reason_of(caught) == Reason.KEY_SPENT


def test_two_members_may_use_the_same_within_its_grace() -> None:
    prekeys = used(made(), 2, ANN, NOW)
    one_time_prekey(prekeys, 2, BEN, NOW + GRACE)
    prekeys = used(prekeys, 2, BEN, NOW + GRACE)
    for member in (ANN, BEN):
        with pytest.raises(RemoteError) as caught:
            one_time_prekey(prekeys, 2, member, NOW + GRACE)
        assert reason_of(caught) == Reason.KEY_SPENT
    with pytest.raises(RemoteError) as caught:
        one_time_prekey(prekeys, 2, CLEO, NOW + GRACE + 1)  # counted from the first use
    assert reason_of(caught) == Reason.KEY_SPENT


def test_pruning_deletes_a_used_one_after_its_grace() -> None:
    prekeys = made()
    secret = one_time_prekey(prekeys, 2, ANN, NOW)
    prekeys = used(prekeys, 2, ANN, NOW)
    assert prune(prekeys, NOW + GRACE) is prekeys
    assert secret in msgpack.encode(prekeys)
    pruned = prune(prekeys, NOW + GRACE + 1)
    assert secret not in msgpack.encode(pruned)
    assert [key.id for key in pruned.one_time] == [1, 3, 4]
    with pytest.raises(RemoteError) as caught:
        one_time_prekey(pruned, 2, BEN, NOW + GRACE + 1)
    assert reason_of(caught) == Reason.KEY_SPENT


def test_the_strict_way_deletes_at_the_first_use() -> None:
    prekeys = made(grace=0)
    secret = one_time_prekey(prekeys, 2, ANN, NOW)
    after = used(prekeys, 2, ANN, NOW)
    assert secret not in msgpack.encode(after)
    with pytest.raises(RemoteError) as caught:
        one_time_prekey(after, 2, BEN, NOW)
    assert reason_of(caught) == Reason.KEY_SPENT
    assert due(after, NOW)


@pytest.mark.parametrize("number", [0, 5, MAX_ONE_TIME_ID])
def test_one_time_prekeys_that_never_were(number: int) -> None:
    with pytest.raises(RemoteError) as caught:
        one_time_prekey(made(), number, ANN, NOW)
    assert reason_of(caught) == Reason.KEY_MISSING


@pytest.mark.parametrize("gen", [0, 2, MAX_GENERATION])
def test_signed_prekeys_that_never_were(gen: int) -> None:
    with pytest.raises(RemoteError) as caught:
        signed_prekey(made(), gen, NOW)
    assert reason_of(caught) == Reason.KEY_MISSING


def test_a_signed_prekey_that_has_ended_is_refused_before_it_is_pruned() -> None:
    last = NOW + LIFE + IN_FLIGHT
    signed_prekey(made(), 1, last)
    with pytest.raises(RemoteError) as caught:
        signed_prekey(made(), 1, last + 1)
    assert reason_of(caught) == Reason.PREKEY_EXPIRED


def test_the_end_of_a_bundle_is_the_end_of_a_used_key_too() -> None:
    last = NOW + LIFE + IN_FLIGHT
    prekeys = used(made(), 1, ANN, last - 10)
    one_time_prekey(prekeys, 1, BEN, last)
    with pytest.raises(RemoteError):
        one_time_prekey(prekeys, 1, BEN, last + 1)
    assert prune(prekeys, last + 1).one_time == ()


# Renewal.


def test_a_renewed_bundle_is_newer_and_keeps_the_identity() -> None:
    old = made()
    new = renew(old, SeededEntropy(1, "owner"), NOW + DAY, 4)
    assert bundle_of(new).gen == bundle_of(old).gen + 1 == 2
    assert bundle_of(new).identity == bundle_of(old).identity
    assert bundle_of(new).spk != bundle_of(old).spk
    assert (bundle_of(new).not_before, bundle_of(new).not_after) == (NOW + DAY - SKEW, NOW + DAY + LIFE)


def test_what_an_older_bundle_offers_is_still_there() -> None:
    """A peer that has not seen the new bundle begins with the old one."""
    old = made()
    new = renew(old, SeededEntropy(1, "owner"), NOW + LIFE * 0.7, 4)
    last = NOW + LIFE + IN_FLIGHT
    assert public_of(signed_prekey(new, 1, last).secret) == bundle_of(old).spk
    for number, public in bundle_of(old).opks:
        assert public_of(one_time_prekey(new, number, ANN, last)) == public
    assert prune(new, last) is new
    secrets = [signed_prekey(new, 1, last).secret]
    secrets += [one_time_prekey(new, number, ANN, last) for number, _ in bundle_of(old).opks]
    later = prune(new, last + 1)
    assert not [secret for secret in secrets if secret in msgpack.encode(later)]
    with pytest.raises(RemoteError) as caught:
        signed_prekey(later, 1, last + 1)
    assert reason_of(caught) == Reason.PREKEY_EXPIRED
    with pytest.raises(RemoteError) as caught:
        one_time_prekey(later, 1, ANN, last + 1)
    assert reason_of(caught) == Reason.KEY_SPENT
    signed_prekey(later, 2, last + 1)


def test_unused_ones_are_published_on_while_young_and_used_ones_never() -> None:
    prekeys = used(made(4), 3, ANN, NOW)
    young = renew(prekeys, SeededEntropy(1, "owner"), NOW + DAY, 4)
    assert [number for number, _ in bundle_of(young).opks] == [1, 2, 4, 5]
    old = renew(prekeys, SeededEntropy(1, "owner"), NOW + LIFE * 0.7, 4)
    assert [number for number, _ in bundle_of(old).opks] == [5, 6, 7, 8]
    decode_bundle(encode_bundle(bundle_of(young)))


def test_fewer_are_published_if_fewer_are_asked_for() -> None:
    fewer = renew(made(4), SeededEntropy(1, "owner"), NOW + DAY, 2)
    assert [number for number, _ in bundle_of(fewer).opks] == [1, 2]
    one_time_prekey(fewer, 4, ANN, NOW + DAY)
    later = renew(fewer, SeededEntropy(2, "owner"), NOW + DAY, 3)
    assert [number for number, _ in bundle_of(later).opks] == [1, 2, 5]  # what was withdrawn stays so


def test_after_a_seed_all_in_the_bundle_is_as_new_as_that() -> None:
    spk, entropy = key_pair(SeededEntropy(1, "seed")), SeededEntropy(1, "owner")
    healed = renew(made(4), entropy, NOW + 60, 2, spk)
    assert bundle_of(healed).spk == spk.public
    assert [number for number, _ in bundle_of(healed).opks] == [5, 6]
    for number in range(1, 7):  # Whoever does not know of the seed yet may use the older ones.
        one_time_prekey(healed, number, ANN, NOW + 60)
    signed_prekey(healed, 1, NOW + 60)
    more = renew(used(healed, 5, ANN, NOW + 60), entropy, NOW + DAY, 3, spk)
    assert bundle_of(more).spk == spk.public
    assert [number for number, _ in bundle_of(more).opks] == [6, 7, 8]
    again = renew(more, entropy, NOW + DAY, 3, key_pair(entropy))
    assert [number for number, _ in bundle_of(again).opks] == [9, 10, 11]


def test_once_all_know_a_seed_what_is_older_goes() -> None:
    spk, entropy = key_pair(SeededEntropy(1, "seed")), SeededEntropy(1, "owner")
    old = made(4)
    healed = renew(renew(old, entropy, NOW + 60, 2, spk), entropy, NOW + 90, 3, spk)
    retired = retire(healed, spk.secret)
    assert ([key.gen for key in retired.signed], [key.id for key in retired.one_time]) == ([2, 3], [5, 6, 7])
    data = msgpack.encode(retired)
    secrets = [signed_prekey(old, 1, NOW).secret, *(key.secret for key in old.one_time)]
    assert not [secret for secret in secrets if secret in data]
    with pytest.raises(RemoteError) as caught:
        one_time_prekey(retired, 1, ANN, NOW + 90)
    assert reason_of(caught) == Reason.KEY_SPENT
    with pytest.raises(RemoteError) as caught:
        signed_prekey(retired, 1, NOW + 90)
    assert reason_of(caught) == Reason.PREKEY_EXPIRED
    before_its_bundle = retire(old, spk.secret)  # All know the seed before its bundle is even made.
    assert (before_its_bundle.signed, before_its_bundle.one_time) == ((), ())
    assert due(before_its_bundle, NOW)


def test_when_to_renew() -> None:
    prekeys = made(8)
    assert not due(prekeys, NOW)
    assert not due(prekeys, NOW + LIFE * 2 / 3 - 60)
    assert due(prekeys, NOW + LIFE * 2 / 3 + 60)
    for number in range(1, 7):
        prekeys = used(prekeys, number, ANN, NOW)
    assert not due(prekeys, NOW)  # two of eight left
    assert due(used(prekeys, 7, ANN, NOW), NOW)
    assert due(prekeys, NOW + GRACE / 2)  # the six will be deleted soon
    assert due(prune(prekeys, NOW + GRACE + 1), NOW + GRACE + 1)
    renewed = renew(prekeys, SeededEntropy(1, "owner"), NOW + GRACE / 2, 8)
    assert not due(renewed, NOW + GRACE / 2)
    assert not due(made(0), NOW)


def test_limits_of_counts_and_numbers() -> None:
    prekeys = made(0)
    for count in (-1, MAX_ONE_TIME + 1):
        with pytest.raises(Refused) as caught:
            renew(prekeys, SeededEntropy(1, "owner"), NOW, count)
        assert reason_of(caught) == Reason.TOO_MANY
    late = structs.replace(prekeys, bundle=structs.replace(bundle_of(prekeys), gen=MAX_GENERATION))
    full = structs.replace(prekeys, next_id=MAX_ONE_TIME_ID)
    for spent in (late, full):
        with pytest.raises(Refused) as caught:
            renew(spent, SeededEntropy(1, "owner"), NOW, 1)
        assert reason_of(caught) == Reason.TOO_MANY


def test_nothing_secret_shows() -> None:
    prekeys = made()
    shown = f"{prekeys!r} {prekeys.signed!r} {prekeys.one_time!r} {prekeys.identity!r}"
    secrets = [prekeys.identity.secret, *(key.secret for key in prekeys.one_time)]
    for secret in secrets:
        assert repr(secret)[2:-1] not in shown
        assert secret.hex()[:8] not in shown


@given(st.lists(st.tuples(st.sampled_from("urp"), st.integers(0, 40)), max_size=30), st.integers(0, 9))
def test_through_a_whole_life(steps: list[tuple[str, int]], count: int) -> None:
    """Whatever is published can be used by a member that has not used it; the numbers never come again."""
    prekeys, now = made(count), NOW
    for turn, (step, number) in enumerate(steps):
        now += number * DAY / 4
        if step == "u" and bundle_of(prekeys).opks:
            chosen = bundle_of(prekeys).opks[number % len(bundle_of(prekeys).opks)][0]
            if chosen in {key.id for key in prune(prekeys, now).one_time}:
                member = MemberId(turn.to_bytes(16, "big"))
                one_time_prekey(prekeys, chosen, member, now)
                prekeys = used(prekeys, chosen, member, now)
        elif step == "r":
            before = prekeys
            prekeys = renew(prekeys, SeededEntropy(turn, "owner"), now, count)
            assert bundle_of(prekeys).gen == bundle_of(before).gen + 1
            assert len(bundle_of(prekeys).opks) == count
            for published, public in bundle_of(prekeys).opks:
                assert public_of(one_time_prekey(prekeys, published, ANN, now)) == public
            decode_bundle(encode_bundle(bundle_of(prekeys)))
        elif step == "p":
            prekeys = prune(prekeys, now)
            assert prune(prekeys, now) is prekeys
        ids = [key.id for key in prekeys.one_time]
        assert ids == sorted(set(ids))
        assert all(key < prekeys.next_id for key in ids)


def test_prekeys_that_a_clock_ahead_has_made_are_renewed_when_it_is_right_again() -> None:
    ahead = make_prekeys(SeededEntropy(0, "ahead"), NOW + 3 * 365 * 86_400, 8)
    with pytest.raises(Refused):
        check_bundle(ahead.bundle, NOW)
    assert due(ahead, NOW)
    true = renew(ahead, SeededEntropy(1, "ahead"), NOW, 8)
    check_bundle(true.bundle, NOW)
    assert not due(true, NOW)
