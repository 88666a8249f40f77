"""Handing our own blocks to peers that keep them, and knowing who does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.names.asking import OWNER
from linnet.names.block import Block
from linnet.names.messages import PutAnswer, PutRecord
from linnet.trace.records import Kind, Record

PUT = "put"
TOLD = 64
"""Peers that are remembered for one label; those that answered longest ago are forgotten."""
_NUMBER_BYTES = 8

PlacingEffect: TypeAlias = Send[PutRecord] | SetTimer[Tick] | Record
Told: TypeAlias = tuple[tuple[PeerId, Reason | None], ...]


class Placing:
    """Which peer was handed which version, and what became of it."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._number = 0
        self._open: dict[int, tuple[PeerId, bytes, int]] = {}
        self._told: dict[bytes, dict[PeerId, tuple[int, Reason | None]]] = {}

    def hand(self, block: Block, peers: Sequence[PeerId]) -> list[PlacingEffect]:
        """Give a block to peers; who does not answer is given it again when it is next handed out."""
        effects: list[PlacingEffect] = []
        self._told.setdefault(block.lookup, {})
        for peer in peers:
            self._number += 1
            self._open[self._number] = (peer, block.lookup, block.version)
            effects.append(Send(peer, PutRecord(self._number, block)))
            tick = Tick(OWNER, PUT, self._number.to_bytes(_NUMBER_BYTES, "big"))
            effects.append(SetTimer(self._patience, tick))
        return effects

    def on_answer(self, peer: PeerId, message: PutAnswer) -> list[PlacingEffect]:
        """A peer keeps it, or says why not."""
        waiting = self._open.get(message.request)
        if waiting is None or waiting[0] != peer:
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="an answer nobody waits for")]
        return self._settle(message.request, message.reason, Kind.REJECTED)

    def fired(self, tick: Tick) -> list[PlacingEffect]:
        """A peer did not answer in time."""
        number = int.from_bytes(tick.key, "big")
        return self._settle(number, Reason.TIMEOUT, Kind.DROPPED) if number in self._open else []

    def link_down(self, peer: PeerId, reason: Reason) -> list[PlacingEffect]:
        """A peer is gone, and perhaps what it was handed."""
        lost = [number for number, waiting in self._open.items() if waiting[0] == peer]
        return [effect for number in lost for effect in self._settle(number, reason, Kind.DROPPED)]

    def told(self, block: Block) -> Told:
        """Who was handed this version, and what they said."""
        under = self._told.get(block.lookup, {})
        return tuple((peer, reason) for peer, (version, reason) in under.items() if version == block.version)

    def forget(self, lookup: bytes) -> None:
        """There is nothing more to hand out under this key."""
        self._told.pop(lookup, None)

    def _settle(self, number: int, reason: Reason | None, kind: Kind) -> list[PlacingEffect]:
        peer, lookup, version = self._open.pop(number)
        told = self._told.get(lookup)
        if told is not None:
            told.pop(peer, None)
            told[peer] = (version, reason)
            if len(told) > TOLD:
                del told[next(iter(told))]
        if reason is None:
            return []
        return [Record(kind, peer=peer, reason=reason, note="a record of ours")]
