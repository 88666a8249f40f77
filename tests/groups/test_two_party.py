"""Channels between two members: order, crossing, replays, deletion, and what a thief can open."""

from __future__ import annotations

import copy
import hashlib
import os
from collections import deque
from typing import TypeVar

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack, structs

from linnet.core.errors import Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.groups.labels import INITIAL, TWO_PARTY, MemberId, Purpose, fields
from linnet.groups.prekeys import GRACE, LIFE, Prekeys, bundle_of, make_prekeys, prune, renew
from linnet.groups.primitives import hpke_open, hpke_seal, key_pair, public_of
from linnet.groups.two_party import (
    EMPTY,
    MAX_OWN_KEYS,
    REMEMBERED,
    Channel,
    Incoming,
    PeerKeys,
    Reach,
    begun,
    direct_context,
    direct_length,
    reach_by,
    receive,
    restart,
    send,
)
from linnet.sim.seeded_random import SeededEntropy, named_luck

NOW = 1_750_000_000.0
GROUP = bytes(range(32))
SEED = b"seed" * 8

Said = tuple[bytes, bytes]
"""The context and the bytes of a direct message."""
Step = TypeVar("Step")


class End:
    """One member's end, for tests: it keeps its state, and everything that it ever drew."""

    def __init__(self, name: str, one_time: int = 4) -> None:
        self.mid = MemberId(name.encode().ljust(16, b"."))
        self.source = SeededEntropy(0, name)
        self.drawn: list[bytes] = []
        self.channel: Channel = EMPTY
        self.prekeys: Prekeys = make_prekeys(self.entropy, NOW, one_time)
        self.inband: dict[int, bytes] = {}
        self.seq = 0

    def entropy(self, count: int) -> bytes:
        self.drawn.append(self.source(count))
        return self.drawn[-1]

    def reach(self, other: End, inband: tuple[int, bytes] | None = None, now: float = NOW) -> Reach:
        identity = other.prekeys.identity.public
        return reach_by(self.channel, PeerKeys(identity, bundle_of(other.prekeys), inband), self.mid, now)

    def say(self, other: End, payload: bytes = SEED, reach: Reach | None = None) -> Said:
        self.seq += 1
        context = direct_context(GROUP, self.mid, other.mid, self.seq, Purpose.SEED)
        by = reach or self.reach(other)
        secret = self.prekeys.identity.secret
        self.channel, sealed = send(self.channel, by, secret, context, payload, self.entropy)
        return context, sealed

    def hear(self, other: End, said: Said, now: float = NOW) -> bytes:
        identity = other.prekeys.identity.public
        self.channel, self.prekeys, payload = receive(
            self.channel, self.prekeys, self.inband, Incoming(other.mid, identity, *said), now
        )
        return payload

    def stolen(self) -> End:
        """What a thief of this end's whole state has."""
        thief = copy.copy(self)
        thief.inband = dict(self.inband)
        thief.source = SeededEntropy(1, "thief")
        return thief

    def heal(self, number: int) -> tuple[int, bytes]:
        """A seed of this number: its prekey, and after it a bundle of that."""
        spk = key_pair(self.entropy)
        self.inband[number] = spk.secret
        self.prekeys = renew(self.prekeys, self.entropy, NOW, len(bundle_of(self.prekeys).opks), spk)
        return number, spk.public

    def state(self) -> bytes:
        return msgpack.encode((self.channel, self.prekeys, sorted(self.inband.items())))


def refused(end: End, other: End, said: Said, now: float = NOW) -> RemoteError:
    """The error with which this end does not take this message; its state is as it was."""
    before = end.state()
    with pytest.raises(RemoteError) as caught:
        end.hear(other, said, now)
    assert end.state() == before
    return caught.value


def kind(said: Said) -> int:
    return said[1][0]


# In every order that channels can meet.


def test_one_way() -> None:
    a, b = End("a"), End("b")
    for number in range(10):
        said = a.say(b, bytes((number,)) * 32)
        assert kind(said) == (1 if number else 0)
        assert b.hear(a, said) == bytes((number,)) * 32
    assert len(b.channel.own) == 0


def test_alternating() -> None:
    a, b = End("a"), End("b")
    for number in range(10):
        there = a.say(b)
        assert kind(there) == (2 if number else 0)
        assert b.hear(a, there) == SEED
        back = b.say(a)
        assert kind(back) == 2
        assert a.hear(b, back) == SEED
        assert len(a.channel.own) == 0
        assert len(b.channel.own) == 1


def test_crossing_in_lock_step() -> None:
    a, b = End("a"), End("b")
    for number in range(10):
        to_b, to_a = a.say(b, b"to b"), b.say(a, b"to a")
        assert kind(to_b) == kind(to_a) == (2 if number else 0)
        assert b.hear(a, to_b) == b"to b"
        assert a.hear(b, to_a) == b"to a"
        assert len(a.channel.own) == len(b.channel.own) == 1


def test_both_begin_at_once_and_say_more_before_they_hear() -> None:
    a, b = End("a"), End("b")
    to_b = [a.say(b, bytes((number,))) for number in range(3)]
    to_a = [b.say(a, bytes((number,))) for number in range(5)]
    assert [kind(said) for said in to_b] == [0, 1, 1]
    assert [kind(said) for said in to_a] == [0, 1, 1, 1, 1]
    assert [b.hear(a, said) for said in to_b] == [bytes((number,)) for number in range(3)]
    assert [a.hear(b, said) for said in to_a] == [bytes((number,)) for number in range(5)]
    assert b.hear(a, a.say(b)) == a.hear(b, b.say(a)) == SEED


def long_or_short(step: st.SearchStrategy[Step]) -> st.SearchStrategy[list[Step]]:
    """Lists that are easily made smaller when they fail, and such that go on for long."""
    return st.lists(step, max_size=32) | st.lists(step, min_size=128, max_size=256)


@settings(max_examples=1_000 if os.environ.get("LINNET_SOAK") else 20, deadline=None)
@given(long_or_short(st.tuples(st.booleans(), st.integers(0, 19))), st.integers(0, 3))
def test_any_interleaving(steps: list[tuple[bool, int]], one_time: int) -> None:
    """Each side's messages come in order; all else, restarts and renewals among it, comes as it will."""
    ends = (End("a", one_time), End("b", one_time))
    under_way: tuple[deque[tuple[bytes, Said]], ...] = (deque(), deque())
    count = 0
    for who, what in steps:
        me, other = ends[who], ends[not who]
        if what < 10:
            count += 1
            payload = count.to_bytes(2, "big")
            under_way[who].append((payload, me.say(other, payload)))
        elif what < 18 and under_way[not who]:
            hear_next(me, other, under_way[not who])
        elif what == 18:
            me.channel = restart(me.channel)
        elif what == 19:
            me.prekeys = renew(me.prekeys, me.entropy, NOW, one_time)
    for (me, other), queue in zip((ends, ends[::-1]), under_way[::-1], strict=True):
        while queue:
            hear_next(me, other, queue)


def hear_next(me: End, other: End, queue: deque[tuple[bytes, Said]]) -> None:
    """The old state opens a message, the new one does not open it again."""
    payload, said = queue.popleft()
    assert me.hear(other, said) == payload
    refused(me, other, said)


def test_a_deep_backlog_in_random_order() -> None:
    """128 messages each way, then each side hears and says as luck has it until all is heard."""
    luck = named_luck(0, "backlog")
    ends = (End("a"), End("b"))
    under_way: tuple[deque[tuple[bytes, Said]], ...] = (deque(), deque())

    def say(who: int) -> None:
        payload = luck.randbytes(32)
        under_way[who].append((payload, ends[who].say(ends[1 - who], payload)))

    for who in [0, 1] * 128:
        say(who)
    assert [len(end.channel.own) for end in ends] == [128, 128]
    more = 128
    while under_way[0] or under_way[1]:
        who = luck.randrange(2)
        if more and luck.random() < 0.3:
            more -= 1
            say(who)
        elif under_way[1 - who]:
            hear_next(ends[who], ends[1 - who], under_way[1 - who])
    assert more == 0
    ends[0].hear(ends[1], ends[1].say(ends[0]))
    assert len(ends[0].channel.own) == 0


# The bytes.


@pytest.mark.parametrize("payload", [0, 32, 64])
def test_lengths_follow_from_the_first_byte(payload: int) -> None:
    a, b = End("a"), End("b")
    first = a.say(b, bytes(payload))
    second = a.say(b, bytes(payload))
    b.hear(a, first)
    answer = b.say(a, bytes(payload))
    lengths = [len(said[1]) for said in (first, second, answer)]
    assert lengths == [125 + payload, 117 + payload, 121 + payload]
    assert [direct_length(said[1][:1], payload) for said in (first, second, answer)] == lengths
    if payload == 32:
        assert lengths == [157, 149, 153]
        assert [direct_length(said[1]) for said in (first, second, answer)] == lengths


@pytest.mark.parametrize("head", [b"", b"\x03", b"\xff"])
def test_no_length_of_no_kind(head: bytes) -> None:
    with pytest.raises(RemoteError) as caught:
        direct_length(head)
    assert caught.value.reason == Reason.MALFORMED


def test_a_known_conversation_stays_as_it_is() -> None:
    a, b = End("known a"), End("known b")
    said = [a.say(b), a.say(b)]
    for each in said:
        b.hear(a, each)
    said.append(b.say(a))
    a.hear(b, said[-1])
    said.append(a.say(b))
    digests = [hashlib.sha256(each[1]).hexdigest()[:16] for each in said]
    assert digests == ["5d2670dc5b74cfbc", "a26da33700c563cc", "006de64aa5c59329", "562627a3d1e4116c"]


def exchanged(secret: bytes, public: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(public))


@pytest.mark.parametrize("one_time", [0, 4])
@pytest.mark.parametrize("by_operation", [False, True])
def test_a_first_message_by_its_description(one_time: int, by_operation: bool) -> None:
    """Opened step by step with another library: the four agreements, the key derivation, the cipher."""
    a, b = End("a"), End("b", one_time)
    spk = b.prekeys.signed[0].keys
    reach = a.reach(b)
    if by_operation:
        reach = a.reach(b, b.heal(7))
        spk = b.prekeys.signed[1].keys
    context, sealed = a.say(b, reach=reach)
    ephemeral, ref, opk, body = sealed[1:33], sealed[33:37], sealed[37:41], sealed[41:]
    assert ref.hex() == ("80000007" if by_operation else "00000001")
    number = int.from_bytes(opk, "big")
    assert (number > 0) == (one_time > 0)
    identity, theirs = b.prekeys.identity, a.prekeys.identity.public
    shared = exchanged(spk.secret, theirs) + exchanged(identity.secret, ephemeral)
    shared += exchanged(spk.secret, ephemeral)
    if number:
        shared += exchanged(b.prekeys.one_time[number - 1].secret, ephemeral)
    info = fields(INITIAL, context, ephemeral, theirs, identity.public, spk.public, ref, opk)
    out = HKDF(SHA256(), 44, bytes(32), info).derive(b"\xff" * 32 + shared)
    inner = ChaCha20Poly1305(out[:32]).decrypt(out[32:], body, context)
    assert inner[64:68] == bytes((0, 0, 0, 1))
    assert inner[68:] == SEED
    assert a.channel.own == (a.drawn[-3],)
    assert inner[32:64] == public_of(a.drawn[-3])
    assert a.channel.peer == public_of(inner[:32])


def test_later_messages_by_their_description() -> None:
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
    a, b = End("a"), End("b")
    b.hear(a, a.say(b))
    context, sealed = a.say(b)
    assert b.channel.received is not None
    key = X25519PrivateKey.from_private_bytes(b.channel.received)
    info = fields(TWO_PARTY, b"\x01", fields(GROUP, a.mid, b.mid, (2).to_bytes(4, "big"), b"seed"))
    assert suite.decrypt(sealed[1:], key, info=info)[64:] == bytes((0, 0, 0, 2)) + SEED
    b.hear(a, (context, sealed))
    context, sealed = b.say(a)
    assert sealed[:5] == bytes((2, 0, 0, 0, 2))
    key = X25519PrivateKey.from_private_bytes(a.channel.own[1])
    inner = suite.decrypt(sealed[5:], key, info=fields(TWO_PARTY, sealed[:5], context))
    assert inner[64:] == bytes((0, 0, 0, 1)) + SEED


# What must not open.


def three_kinds() -> list[tuple[End, End, Said]]:
    """A message of each kind, with who may open it and who sent it, with and without one-time keys."""
    found = []
    for one_time in (4, 0):
        a, b = End("a", one_time), End("b", one_time)
        first = a.say(b)
        found.append((b.stolen(), a, first))
        b.hear(a, first)
        second = a.say(b)
        found.append((b.stolen(), a, second))
        b.hear(a, second)
        found.append((a, b, b.say(a)))
    assert [kind(said) for _, _, said in found] == [0, 1, 2, 0, 1, 2]
    return found


@pytest.mark.parametrize("which", range(6))
def test_every_changed_byte_is_refused(which: int) -> None:
    end, other, (context, sealed) = three_kinds()[which]
    for place in range(len(sealed)):
        for change in (0x01, 0x80):
            changed = bytearray(sealed)
            changed[place] ^= change
            refused(end, other, (context, bytes(changed)))
    assert end.hear(other, (context, sealed)) == SEED


KINDS = three_kinds()


@given(
    st.sampled_from(KINDS),
    st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=8)), max_size=4),
    st.binary(max_size=200) | st.none(),
)
def test_arbitrary_bytes_are_refused(
    of: tuple[End, End, Said], changes: list[tuple[int, bytes]], instead: bytes | None
) -> None:
    end, other, (context, sealed) = of
    changed = sealed if instead is None else instead
    for place, patch in changes:
        changed = changed[:place] + patch + changed[place + len(patch) :]
    if changed != sealed:
        refused(end, other, (context, changed))


@pytest.mark.parametrize("which", range(6))
def test_a_message_opens_only_where_it_belongs(which: int) -> None:
    end, other, (context, sealed) = three_kinds()[which]
    contexts = [
        direct_context(bytes(32), other.mid, end.mid, other.seq, Purpose.SEED),
        direct_context(GROUP, end.mid, other.mid, other.seq, Purpose.SEED),
        direct_context(GROUP, other.mid, end.mid, other.seq + 1, Purpose.SEED),
        direct_context(GROUP, other.mid, end.mid, other.seq, Purpose.FORWARD),
        b"",
    ]
    assert context not in contexts
    told = {str(refused(end, other, (wrong, sealed))) for wrong in contexts}
    assert len(told) == 1
    if kind((context, sealed)) == 0:  # the identity of the sender is the membership's, not the message's
        refused(end, End("mallory"), (context, sealed))


def test_failures_to_decrypt_look_alike() -> None:
    a, b = End("a"), End("b")
    b.hear(a, a.say(b))
    context, sealed = a.say(b)
    attempts = [
        (context, sealed[:-1] + bytes((sealed[-1] ^ 1,))),  # a wrong tag
        (context, b"\x02\x00\x00\x00\x09" + sealed[1:]),  # a key that was never made
        (context, b"\x03" + sealed[1:]),  # a kind that is none
        (context, sealed[:1]),  # nothing after the kind
        (context, b""),
        (context, b"\x01" + bytes(32) + sealed[33:]),  # a key of low order
    ]
    told = {str(refused(b, a, attempt)) for attempt in attempts}
    told.add(str(refused(End("c"), a, (context, sealed))))  # a channel that has not begun
    c = End("c")
    context, sealed = c.say(b)
    told.add(str(refused(b, c, (context, sealed[:1] + bytes(32) + sealed[33:]))))  # and in a first message
    assert told == {"undecryptable: it does not open"}


@pytest.mark.parametrize("public", [bytes(32), b"\x01" + bytes(31)])
@pytest.mark.parametrize("index", [0, 1])
def test_keys_that_a_peer_must_not_give_us(public: bytes, index: int) -> None:
    """One of low order would make all that we send to this peer fail, one without index would mislead it."""
    if index == 0:
        public = key_pair(SeededEntropy(0, "fine")).public
    a, b = End("a"), End("b")
    b.hear(a, a.say(b))
    assert b.channel.received is not None
    context = direct_context(GROUP, a.mid, b.mid, 2, Purpose.SEED)
    inner = bytes(32) + public + index.to_bytes(4, "big") + SEED
    for content in (inner, inner[:67]):
        to = public_of(b.channel.received)
        sealed = b"\x01" + hpke_seal(to, fields(TWO_PARTY, b"\x01", context), content, a.entropy)
        assert refused(b, a, (context, sealed)).reason == Reason.UNDECRYPTABLE


# Replays.


@pytest.mark.parametrize("one_time", [4, 0])
def test_a_replay_is_refused_whatever_came_between(one_time: int) -> None:
    a, b = End("a"), End("b", one_time)
    heard_by_b: list[Said] = []
    for number in range(6):
        heard_by_b.append(a.say(b))
        b.hear(a, heard_by_b[-1])
        if number % 2:
            a.hear(b, b.say(a))
        for said in heard_by_b:
            refused(b, a, said)


def test_a_first_message_again_is_refused_as_such() -> None:
    for one_time in (4, 0):
        a, b = End("a"), End("b", one_time)
        said = a.say(b)
        b.hear(a, said)
        assert refused(b, a, said).reason == Reason.KEY_SPENT


def test_first_messages_without_one_time_key_are_remembered_to_a_limit() -> None:
    a, b = End("a"), End("b", 0)
    said = []
    for _ in range(REMEMBERED + 1):
        a.channel = restart(a.channel)
        said.append(a.say(b))
        b.hear(a, said[-1])
    assert len(b.channel.opened) == REMEMBERED
    for each in said[1:]:
        assert refused(b, a, each).reason == Reason.KEY_SPENT


# Prekeys at work.


def test_two_members_that_chose_the_same_key() -> None:
    a, c, b = End("a"), End("c"), End("b", 1)
    ends = {end.mid: EMPTY for end in (a, c)}
    for end in (a, c):
        said = end.say(b)
        b.channel = ends[end.mid]
        assert b.hear(end, said, NOW + GRACE) == SEED
        ends[end.mid] = b.channel
    late = End("late")
    b.channel = EMPTY
    assert refused(b, late, late.say(b), NOW + 2 * GRACE + 1).reason == Reason.KEY_SPENT


def test_how_to_begin() -> None:
    a, b = End("a"), End("b")
    identity, bundle = b.prekeys.identity.public, bundle_of(b.prekeys)
    inband = (7, key_pair(b.entropy).public)
    renewed = structs.replace(bundle, spk=inband[1])
    both = reach_by(EMPTY, PeerKeys(identity, renewed, inband), a.mid, NOW)
    assert (both.spk_ref, both.spk, both.weak) == (7, inband[1], False)
    assert both.opk in bundle.opks
    assert reach_by(EMPTY, PeerKeys(identity, bundle, inband), a.mid, NOW, renewed=False) == both
    late = NOW + LIFE + 1
    for reach in (
        reach_by(EMPTY, PeerKeys(identity, bundle, inband), a.mid, NOW),
        reach_by(EMPTY, PeerKeys(identity, None, inband), a.mid, NOW),
        reach_by(EMPTY, PeerKeys(identity, bundle, inband), a.mid, late),
        reach_by(EMPTY, PeerKeys(identity, structs.replace(bundle, identity=bundle.spk), inband), a.mid, NOW),
    ):
        assert (reach.identity, reach.spk_ref, reach.spk, reach.opk) == (identity, *inband, None)
        assert reach.weak
    for other, now, reason in (
        (None, NOW, Reason.MISSING_PREKEYS),
        (structs.replace(bundle, identity=bundle.spk), NOW, Reason.MISSING_PREKEYS),
        (bundle, late, Reason.PREKEY_EXPIRED),
    ):
        with pytest.raises(Refused) as caught:
            reach_by(EMPTY, PeerKeys(identity, other), a.mid, now)
        assert caught.value.reason == reason


def test_nothing_to_begin_with() -> None:
    a = End("a")
    assert not begun(EMPTY)
    with pytest.raises(Refused) as caught:
        send(EMPTY, None, a.prekeys.identity.secret, b"", SEED, a.entropy)
    assert caught.value.reason == Reason.MISSING_PREKEYS


@pytest.mark.parametrize(("ref", "gen"), [(2**31, 1), (-1, 1), (0, 0), (0, 2**31)])
def test_prekey_numbers_that_do_not_fit(ref: int, gen: int) -> None:
    a, b = End("a"), End("b")
    with pytest.raises(Refused) as caught:
        a.say(b, reach=structs.replace(a.reach(b), spk_ref=ref, gen=gen))
    assert caught.value.reason == Reason.TOO_MANY
    assert a.channel == EMPTY


# Limits.


def test_own_keys_have_a_limit() -> None:
    a, b = End("a"), End("b")
    b.hear(a, a.say(b))
    a.channel = structs.replace(a.channel, own=(bytes(32),) * (MAX_OWN_KEYS - 1))
    a.say(b)
    assert len(a.channel.own) == MAX_OWN_KEYS == 2**16
    before = a.channel
    with pytest.raises(Refused) as caught:
        a.say(b)
    assert caught.value.reason == Reason.TOO_MANY
    assert a.channel is before


def test_the_last_index() -> None:
    a, b = End("a"), End("b")
    a.channel = structs.replace(EMPTY, first=2**32 - 1)
    b.hear(a, a.say(b))
    a.hear(b, b.say(a))
    assert a.channel.first == 2**32
    with pytest.raises(Refused) as caught:
        a.say(b)
    assert caught.value.reason == Reason.TOO_MANY


# Deletion: what was used is nowhere in the state.


def consumed(end: End, said: Said) -> list[bytes]:
    """The secrets that are useless once this message was heard."""
    if kind(said) == 0:
        return []
    assert end.channel.received is not None or kind(said) == 2
    if kind(said) == 1:
        return [end.channel.received or b""]
    last = int.from_bytes(said[1][1:5], "big") - end.channel.first + 1
    return [*end.channel.own[:last], *([end.channel.received] if end.channel.received else [])]


@settings(max_examples=1_000 if os.environ.get("LINNET_SOAK") else 20, deadline=None)
@given(long_or_short(st.tuples(st.booleans(), st.booleans())))
def test_used_secrets_are_deleted(steps: list[tuple[bool, bool]]) -> None:
    ends = (End("a"), End("b"))
    under_way: tuple[deque[Said], ...] = (deque(), deque())
    gone: tuple[list[bytes], ...] = ([], [])
    for who, says in steps:
        me, other = ends[who], ends[not who]
        if says:
            first = len(me.drawn)
            under_way[who].append(me.say(other))
            mine, *others = me.drawn[first:]
            assert len(others) == 2
            assert mine in me.state()
            gone[who].extend(others)  # the key for the peer, and the ephemeral one
        elif under_way[not who]:
            said = under_way[not who].popleft()
            gone[who].extend(consumed(me, said))
            me.hear(other, said)
        state = me.state()
        assert not [secret for secret in gone[who] if secret in state]


def test_nothing_secret_shows() -> None:
    a, b = End("a"), End("b")
    b.hear(a, a.say(b))
    assert repr(a.channel) == "Channel(…)"
    said = a.say(b)
    with pytest.raises(RemoteError) as caught:
        b.hear(a, (b"", said[1]))
    assert b.channel.received is not None
    assert b.channel.received.hex()[:8] not in f"{caught.value} {caught.value!r}"


# What a thief can open.


def windows(end: End) -> list[bytes]:
    """Every 32 bytes of a state that could be a key."""
    state = end.state()
    return [state[place : place + 32] for place in range(len(state) - 31)]


def opens_with_any_key(thief: End, said: Said) -> bool:
    """Whether a later message opens with any 32 bytes of the stolen state."""
    context, sealed = said
    head = sealed[: 5 if kind(said) == 2 else 1]
    for key in windows(thief):
        try:
            hpke_open(key, fields(TWO_PARTY, head, context), sealed[len(head) :])
        except RemoteError:
            continue
        return True
    return False


def opens(thief: End, sender: End, said: Said, now: float = NOW) -> bool:
    try:
        return thief.stolen().hear(sender, said, now) == SEED
    except RemoteError:
        return False


def test_what_a_sender_sent_is_not_in_its_own_state() -> None:
    a, b = End("a", 1), End("b", 1)
    b.hear(a, a.say(b))
    said = a.say(b)
    assert not opens_with_any_key(a, said)
    assert opens_with_any_key(b, said)  # so the attack can find a key where there is one
    b.hear(a, said)
    assert not opens_with_any_key(b, said)
    answer = b.say(a)
    assert not opens_with_any_key(b, answer)
    assert opens_with_any_key(a, answer)
    a.hear(b, answer)
    assert not opens_with_any_key(a, answer)


def test_a_theft_is_healed_by_one_message_from_the_victim() -> None:
    a, b = End("a"), End("b")
    b.hear(a, a.say(b))
    a.hear(b, b.say(a))
    thief = b.stolen()
    for _ in range(2):  # the thief reads on
        said = a.say(b)
        assert thief.hear(a, said) == SEED
        assert b.hear(a, said) == SEED
    answer = b.say(a)
    assert not opens_with_any_key(thief, answer)
    crossing = a.say(b)  # a has not heard the answer yet
    assert opens(thief, a, crossing)
    thief.hear(a, crossing)
    b.hear(a, crossing)
    a.hear(b, answer)
    for _ in range(3):
        said = a.say(b)
        assert not opens(thief, a, said)
        assert b.hear(a, said) == SEED


def test_what_was_opened_before_a_theft_stays_shut() -> None:
    a, b = End("a"), End("b")
    said = [a.say(b) for _ in range(4)]
    for each in said:
        b.hear(a, each)
    b.prekeys = prune(b.prekeys, NOW + GRACE + 1)
    thief = b.stolen()
    for each in said:
        assert not opens(thief, a, each)
        if kind(each):
            assert not opens_with_any_key(thief, each)


def test_a_restart_with_a_prekey_from_after_the_theft_shuts_the_thief_out() -> None:
    """The peer renewed its keys without us among its recipients: what we had of it is the thief's too."""
    a, b = End("a"), End("b")
    b.hear(a, a.say(b))
    thief = b.stolen()
    spk = key_pair(b.entropy)
    b.inband[3] = spk.secret
    assert opens(thief, a, a.stolen().say(b))  # without a restart
    a.channel = restart(a.channel)
    assert not begun(a.channel)
    assert opens(thief, a, a.stolen().say(b))  # with the bundle that the thief holds too
    said = a.say(b, reach=a.reach(b, (3, spk.public)))
    assert not opens(thief, a, said)
    assert b.hear(a, said) == SEED
    assert begun(a.channel)
    assert a.hear(b, b.say(a)) == SEED


def test_a_one_time_prekey_keeps_a_first_message_shut_for_later_thieves() -> None:
    """The prekey of an operation lives on; only the one-time key beside it is gone in time."""
    for one_time in (0, 4):
        a, b = End("a"), End("b", one_time)
        said = a.say(b, reach=a.reach(b, b.heal(3)))
        b.hear(a, said)
        b.prekeys = prune(b.prekeys, NOW + GRACE + 1)
        thief = b.stolen()
        # A thief is bound by no memory of what was heard, and by no clock.
        thief.channel = EMPTY
        unused = tuple(structs.replace(key, used_at=None, senders=()) for key in b.prekeys.one_time)
        thief.prekeys = structs.replace(b.prekeys, one_time=unused)
        assert opens(thief, a, said) == (one_time == 0)


@pytest.mark.parametrize("renewed", [True, False])
def test_what_one_theft_before_a_heal_and_one_after_it_open_together(renewed: bool) -> None:
    """The one-time key is of before, the prekey of the heal is there after it: nobody uses such a pair."""
    a, b = End("a"), End("b")
    before = b.stolen()
    bundle = bundle_of(b.prekeys)
    inband = b.heal(3)
    bundle = bundle_of(b.prekeys) if renewed else bundle
    reach = reach_by(EMPTY, PeerKeys(bundle.identity, bundle, inband), a.mid, NOW, renewed)
    said = a.say(b, reach=reach)
    assert b.hear(a, said) == SEED
    b.prekeys = prune(b.prekeys, NOW + GRACE + 1)
    after = b.stolen()
    after.channel = EMPTY
    assert not opens(before, a, said)
    assert not opens(after, a, said, NOW + GRACE + 1)
    before.inband = after.inband
    assert opens(before, a, said) is not renewed
