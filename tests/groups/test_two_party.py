"""Channels between two members: order, crossing, replays, deletion, healing."""

from __future__ import annotations

from msgspec import msgpack

from linnet.groups.ids import MemberId
from linnet.groups.labels import Purpose
from linnet.groups.prekeys import Prekeys, bundle_of, make_prekeys
from linnet.groups.two_party import EMPTY, Channel, direct_context, direct_length, reach_by, receive, send
from linnet.sim.luck import SeededEntropy

NOW = 1_750_000_000.0
GROUP = bytes(range(32))


class End:
    """One member's end, for tests: it keeps its state and everything that it ever drew."""

    def __init__(self, name: str, one_time: int = 4) -> None:
        self.mid = MemberId(name.encode().ljust(16, b"."))
        self._source = SeededEntropy(0, name)
        self.drawn: list[bytes] = []
        self.channel: Channel = EMPTY
        self.prekeys: Prekeys = make_prekeys(self.entropy, NOW, one_time)
        self.inband: dict[int, bytes] = {}
        self.seq = 0

    def entropy(self, count: int) -> bytes:
        self.drawn.append(self._source(count))
        return self.drawn[-1]

    def say(self, other: End, payload: bytes, inband: tuple[int, bytes] | None = None) -> tuple[bytes, bytes]:
        self.seq += 1
        context = direct_context(GROUP, self.mid, other.mid, self.seq, Purpose.SEED)
        reach = reach_by(
            self.channel, other.prekeys.identity.public, bundle_of(other.prekeys), inband, self.mid, NOW
        )
        self.channel, sealed = send(
            self.channel, reach, self.prekeys.identity.secret, context, payload, self.entropy
        )
        return context, sealed

    def hear(self, other: End, said: tuple[bytes, bytes], now: float = NOW) -> bytes:
        self.channel, self.prekeys, payload = receive(
            self.channel,
            self.prekeys,
            self.inband,
            other.mid,
            other.prekeys.identity.public,
            *said,
            now,
        )
        return payload

    def bytes(self) -> bytes:
        return msgpack.encode((self.channel, self.prekeys))


def test_one_way() -> None:
    a, b = End("a"), End("b")
    for number in range(10):
        said = a.say(b, bytes((number,)) * 32)
        assert len(said[1]) == direct_length(said[1]) == (149 if number else 157)
        assert b.hear(a, said) == bytes((number,)) * 32


def test_alternating() -> None:
    a, b = End("a"), End("b")
    for number in range(10):
        said = a.say(b, b"x" * 32)
        assert b.hear(a, said) == b"x" * 32
        said = b.say(a, b"y" * 32)
        assert len(said[1]) == direct_length(said[1]) == 153, number
        assert a.hear(b, said) == b"y" * 32


def test_crossing() -> None:
    a, b = End("a"), End("b")
    for _ in range(10):
        to_b, to_a = a.say(b, b"x" * 32), b.say(a, b"y" * 32)
        assert b.hear(a, to_b) == b"x" * 32
        assert a.hear(b, to_a) == b"y" * 32
