"""Encrypted groups: what an update costs, beside what it is instead of, and a message beside its cipher.

Ratios of processor time in one run. Sender keys are what most messengers have: after a removal every member
sends a new key to every other, here over the same two-party channels as ours.
"""

from __future__ import annotations

import time

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from bench.rates import per_second
from bench.results import Measure, Plan
from linnet.groups import message_crypto, two_party
from linnet.groups.labels import MemberId, Purpose
from linnet.groups.prekeys import Prekeys, bundle_of, make_prekeys
from linnet.groups.two_party import Channel, PeerKeys, direct_context, reach_by
from linnet.lab.studies.groups.circle import START, Circle, Sent
from linnet.sim.seeded_random import SeededEntropy

SECTION = "groups"
MEMBERS, MANY = 32, 128
UPDATE, REKEY = "update: all members", "sender keys renewed: all members"
UPDATE_BYTES, REKEY_BYTES = "update: bodies", "sender keys renewed: direct messages"
FEW_SENT, MANY_SENT = f"update: sender of {MEMBERS}", f"update: sender of {MANY}"
SEAL, OPEN = "message: sealed", "message: opened"
BARE_SEAL, BARE_OPEN = "bare ChaCha20-Poly1305: sealed", "bare ChaCha20-Poly1305: opened"
_TEXT, _BOUND = bytes(256), bytes(200)
_PARTS = ("make", "take", "follow")
"""Signatures aside: both ways have one for each event."""


def update(members: int, listeners: int | None = None) -> tuple[Circle, int]:
    """A group after one update that all have acknowledged, and the bytes of its bodies, prekeys included."""
    circle = Circle(members, 1)
    hearing = range(members if listeners is None else 1 + listeners)

    def answered(sent: Sent) -> int:
        acks = []
        for place in range(1, members):
            circle.hear(place, sent)
            acks += circle.acks(place)
        for ack in acks:
            for place in hearing:
                if place != ack.by:
                    circle.hear(place, ack)
        return sent.body + sum(ack.body for ack in acks)

    answered(circle.create(0, range(1, members)))
    circle.reset()
    size, keys = answered(circle.update(0)), circle.keys(0)
    for place in range(1, members):
        circle.hear(place, keys)
    return circle, size + keys.body


def spent(circle: Circle, place: int | None = None) -> float:
    """Milliseconds of one device, or of all; signatures aside."""
    parties = circle.parties if place is None else [circle.parties[place]]
    return sum(party.spent[part] for party in parties for part in _PARTS) / 1e6


class Pairs:
    """Devices with a channel between every two, as sender keys need them."""

    def __init__(self, members: int) -> None:
        self._group = bytes(32)
        self._entropy = SeededEntropy(1, "sender keys")
        self._ids = [MemberId(place.to_bytes(16, "big")) for place in range(members)]
        self._prekeys = [make_prekeys(self._entropy, START, members) for _ in self._ids]
        self._channels: dict[tuple[int, int], Channel] = {}
        self._round = 0
        self.renew()

    def renew(self) -> tuple[float, int]:
        """Everybody sends a new key to everybody else: milliseconds, and bytes of what was sent."""
        began, sent = time.process_time_ns(), 0
        self._round += 1
        for by in range(len(self._ids)):
            key = self._entropy(32)
            for to in range(len(self._ids)):
                if to != by:
                    sent += self._tell(by, to, key)
        return (time.process_time_ns() - began) / 1e6, sent

    def _tell(self, by: int, to: int, key: bytes) -> int:
        context = direct_context(self._group, self._ids[by], self._ids[to], self._round, Purpose.SEED)
        mine, theirs = self._channel(by, to), self._channel(to, by)
        identity = self._prekeys[to].identity.public
        bundle = bundle_of(self._prekeys[to])
        reach = (
            reach_by(mine, PeerKeys(identity, bundle), self._ids[by], START) if mine.peer is None else None
        )
        self._channels[by, to], sealed = two_party.send(
            mine, reach, self._secret(self._prekeys[by]), context, key, self._entropy
        )
        self._channels[to, by], self._prekeys[to], _ = two_party.receive(
            theirs,
            self._prekeys[to],
            {},
            two_party.Incoming(self._ids[by], self._prekeys[by].identity.public, context, sealed),
            START,
        )
        return len(sealed)

    def _channel(self, a: int, b: int) -> Channel:
        return self._channels.get((a, b), two_party.EMPTY)

    @staticmethod
    def _secret(prekeys: Prekeys) -> bytes:
        return prekeys.identity.secret


def message_rates(members: int, seconds: float) -> dict[str, float]:
    """How many messages a member seals and opens in a second, and how many its cipher would."""
    circle, _ = update(members)
    sender, reader = circle.parties[0], circle.parties[1]
    state, entropy, device = sender.state, sender.entropy, sender.device
    envelope = message_crypto.envelope(state, entropy)[1]
    clear, sealed = envelope.clear, envelope.seal(_TEXT, _BOUND)
    key, nonce, padded = envelope.key[:32], envelope.key[32:], message_crypto.pad(_TEXT)
    bare = ChaCha20Poly1305(key).encrypt(nonce, padded, _BOUND)
    # A state is a value: the same step can be taken from it again and again.
    return {
        SEAL: per_second(lambda: message_crypto.envelope(state, entropy)[1].seal(_TEXT, _BOUND), seconds),
        OPEN: per_second(
            lambda: message_crypto.open_message(reader.state, device, clear, _BOUND, sealed),
            seconds,
        ),
        BARE_SEAL: per_second(lambda: ChaCha20Poly1305(key).encrypt(nonce, padded, _BOUND), seconds),
        BARE_OPEN: per_second(lambda: ChaCha20Poly1305(key).decrypt(nonce, bare, _BOUND), seconds),
    }


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    members, many = plan.count(MEMBERS, 6), plan.count(MANY, 12)
    pairs = Pairs(members)
    times: dict[str, list[float]] = {name: [] for name in (UPDATE, REKEY, FEW_SENT, MANY_SENT)}
    rates: dict[str, list[float]] = {name: [] for name in (SEAL, OPEN, BARE_SEAL, BARE_OPEN)}
    ours = theirs = 0
    for _ in range(plan.runs):
        circle, ours = update(members)
        times[UPDATE].append(spent(circle))
        times[FEW_SENT].append(spent(circle, 0))
        took, theirs = pairs.renew()
        times[REKEY].append(took)
        times[MANY_SENT].append(spent(update(many, listeners=0)[0], 0))
        for name, rate in message_rates(members, plan.seconds).items():
            rates[name].append(rate)
    note = f"{members} members, acknowledgements included, signatures aside"
    notes = {UPDATE: note, REKEY: f"{members} members, signatures aside", SEAL: "256 bytes, padded to 512"}
    return [
        *(Measure(SECTION, name, "ms", tuple(runs), notes.get(name, "")) for name, runs in times.items()),
        Measure(SECTION, UPDATE_BYTES, "bytes", (float(ours),), f"{members} members"),
        Measure(SECTION, REKEY_BYTES, "bytes", (float(theirs),), f"{members} members"),
        *(Measure(SECTION, name, "1/s", tuple(runs), notes.get(name, "")) for name, runs in rates.items()),
    ]
