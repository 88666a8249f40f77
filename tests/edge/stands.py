"""How far streams are known, as a test says."""

from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.delivery.messages import ChainPlace
from linnet.edge.messages import digest_of
from linnet.machine.outbox import Effect, Notice, Outbox

AUTHOR, DEVICE = AuthorId(b"u" * 32), DeviceId(b"d" * 8)
CHAIN = AUTHOR + DEVICE


class Stands:
    """One chain per stream; streams that are not named here are not open."""

    def __init__(self, **last: int) -> None:
        self.last: dict[TopicId, int] = {topic(name): number for name, number in last.items()}

    def digest(self, topic: TopicId) -> bytes | None:
        return digest_of(topic, self.reached(topic)) if topic in self.last else None

    def reached(self, topic: TopicId) -> tuple[ChainPlace, ...]:
        number = self.last.get(topic, -1)
        return (ChainPlace(AUTHOR, DEVICE, 0, number, False),) if number >= 0 else ()


def topic(name: str) -> TopicId:
    """The topic of a stream here."""
    return TopicId(name.encode().ljust(32, b"."))


def told(out: Outbox) -> list[Effect | Notice]:
    """What a machine has asked for, and then what it has to tell other parts."""
    return [*out.take(), *out.take_notices()]
