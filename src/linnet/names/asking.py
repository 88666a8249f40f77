"""The asking side: one question to several peers at once, until all have answered or it takes too long.

What it returns is what was found, right or not: only who knows the name can tell. A hash table over the
network can take its place: whatever answers a `gather` with one `Gathered` of the same number is a
`RecordSource`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from linnet.core.effects import Blame, CancelTimer, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.names.block import Block, check_block
from linnet.names.config import NamesConfig
from linnet.names.messages import AskRecord, RecordIs
from linnet.trace.records import Kind, Record

OWNER = "names"
ASK = "ask"
_NUMBER_BYTES = 8


class Gathered(Struct, frozen=True, gc=False):
    """Everything that was found under a key, and how many peers answered at all."""

    number: int
    blocks: tuple[Block, ...]
    answered: int


AskingEffect: TypeAlias = Send[AskRecord] | SetTimer[Tick] | CancelTimer[Tick] | Record | Blame | Gathered


class RecordSource(Protocol):
    """Where blocks are found that are not here."""

    def gather(self, lookup: bytes, peers: Sequence[PeerId]) -> tuple[int, list[AskingEffect]]:
        """Look for what is kept under a key; ends in one `Gathered` of the number that is returned."""

    def on_answer(self, peer: PeerId, message: RecordIs) -> list[AskingEffect]:
        """A peer answers."""

    def fired(self, tick: Tick) -> list[AskingEffect]:
        """A timer of this source has run out."""

    def link_down(self, peer: PeerId) -> list[AskingEffect]:
        """A peer that may have been asked is gone."""


class _Question:
    __slots__ = ("answered", "blocks", "lookup", "open")

    def __init__(self, lookup: bytes, peers: Sequence[PeerId]) -> None:
        self.lookup = lookup
        self.open: dict[PeerId, None] = dict.fromkeys(peers)
        self.blocks: dict[Block, None] = {}
        self.answered = 0


class Asking:
    """A `RecordSource`: the peers that we have links to."""

    def __init__(self, config: NamesConfig) -> None:
        self._config = config
        self._number = 0
        self._questions: dict[int, _Question] = {}

    def gather(self, lookup: bytes, peers: Sequence[PeerId]) -> tuple[int, list[AskingEffect]]:
        """See `RecordSource.gather`."""
        self._number += 1
        number = self._number
        asked = peers[: self._config.asks]
        if not asked:
            return number, [Gathered(number, (), 0)]
        self._questions[number] = _Question(lookup, asked)
        asks = [Send(peer, AskRecord(number, lookup)) for peer in asked]
        return number, [*asks, SetTimer(self._config.patience, _tick(number))]

    def on_answer(self, peer: PeerId, message: RecordIs) -> list[AskingEffect]:
        """See `RecordSource.on_answer`."""
        question = self._questions.get(message.request)
        if question is None or peer not in question.open or message.lookup != question.lookup:
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="an answer nobody waits for")]
        del question.open[peer]
        effects: list[AskingEffect] = []
        if message.reason is not None:
            note = "a question for a record was refused"
            effects.append(Record(Kind.REJECTED, peer=peer, reason=message.reason, note=note))
        else:
            question.answered += 1
        for block in message.blocks:
            if _is_sound(block, question.lookup):
                question.blocks[block] = None
            else:
                reason = Reason.BAD_SIGNATURE
                effects += (
                    Record(Kind.REJECTED, peer=peer, reason=reason, note="a record"),
                    Blame(peer, reason),
                )
        return [*effects, *self._closed(message.request)]

    def fired(self, tick: Tick) -> list[AskingEffect]:
        """See `RecordSource.fired`: those who have not answered are not waited for."""
        number = int.from_bytes(tick.key, "big")
        question = self._questions.get(number)
        if question is None:
            return []
        note = "a question for a record"
        late = [Record(Kind.DROPPED, peer=peer, reason=Reason.TIMEOUT, note=note) for peer in question.open]
        question.open = {}
        return [*late, *self._closed(number)]

    def link_down(self, peer: PeerId) -> list[AskingEffect]:
        """See `RecordSource.link_down`."""
        effects: list[AskingEffect] = []
        for number, question in list(self._questions.items()):
            if peer in question.open:
                del question.open[peer]
                effects += self._closed(number)
        return effects

    def _closed(self, number: int) -> list[AskingEffect]:
        question = self._questions[number]
        if question.open:
            return []
        del self._questions[number]
        return [CancelTimer(_tick(number)), Gathered(number, tuple(question.blocks), question.answered)]


def _tick(number: int) -> Tick:
    return Tick(OWNER, ASK, number.to_bytes(_NUMBER_BYTES, "big"))


def _is_sound(block: Block, lookup: bytes) -> bool:
    try:
        check_block(block)
    except RemoteError:
        return False
    return block.lookup == lookup
