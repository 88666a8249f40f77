"""Bringing a participant's state up to date: by the whole state or by what it missed, whichever is less.

The whole state is what was verified by a signed hash last. Whoever sends it needs no trust: the receiver
checks it by the same hash. What was missed is replayed as the signed messages themselves
(Toth 2013, section 4.4.5).
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.places.channel.state_log import Step
from linnet.places.channel.state_order import StateOrder
from linnet.places.config import PlacesConfig
from linnet.places.messages import STATE_PAGE_BYTES, StateIs

_ENCODED = 7
"""An encoding is at most this many times the state: twelve bytes are added to a variable of two."""


class Full(Struct, frozen=True):
    """The state as of a message, and the messages that changed it since."""

    message: int
    data: bytes
    replay: tuple[int, ...]
    cost: int


class Delta(Struct, frozen=True):
    """The messages that are missing."""

    replay: tuple[int, ...]
    cost: int


class Unknown(Struct, frozen=True):
    """We cannot help: ask somebody else."""

    reason: Reason = Reason.NOT_HELD


Plan: TypeAlias = Full | Delta | Unknown


def plan(order: StateOrder, known: int) -> Plan:
    """How to bring somebody up to date whose last state message is `known`; 0: it has none."""
    delta, full = plan_delta(order, known), plan_full(order, known)
    if delta is None:
        return full or Unknown()
    return delta if full is None or delta.cost <= full.cost else full


def plan_delta(order: StateOrder, known: int) -> Delta | None:
    """By replaying alone; None if we do not have all of it, or theirs is not a message of our line."""
    steps = order.steps
    resets = [at for at, step in enumerate(steps) if step.delta == 0]
    if resets and known < steps[resets[-1]].message:
        return _delta(steps[resets[-1] :])
    if known >= order.applied and (known or not order.applied):
        return _delta(())
    if known == order.base or any(step.message == known for step in steps):
        return _delta(tuple(step for step in steps if step.message > known))
    return None


def plan_full(order: StateOrder, known: int) -> Full | None:
    """By the signed state; None if there is none, or they have a later one."""
    state = order.signed_state()
    if state is None or order.signed <= known:
        return None
    data = state.encode()
    later = [step for step in order.steps if step.message > order.signed]
    cost = len(data) + sum(step.cost for step in later)
    return Full(order.signed, data, tuple(step.message for step in later), cost)


def _delta(steps: tuple[Step, ...]) -> Delta:
    return Delta(tuple(step.message for step in steps), sum(step.cost for step in steps))


def check(full: Full, expected: bytes) -> None:
    """Raise `RemoteError` unless this is the state with the hash that the voice signed."""
    if hashlib.sha256(full.data).digest() != expected:
        raise RemoteError(Reason.STATE_MISMATCH, f"the state as of {full.message} has another hash")


def pages(place: TopicId, request: int, planned: Plan) -> list[StateIs]:
    """The answer to `AskState`, in pages that fit a message."""
    if isinstance(planned, Unknown):
        return [StateIs(place, request, 0, (), 0, b"", True, planned.reason)]
    if isinstance(planned, Delta):
        return [StateIs(place, request, 0, planned.replay, 0, b"", True, None)]
    data = planned.data
    found: list[StateIs] = []
    for offset in range(0, max(len(data), 1), STATE_PAGE_BYTES):
        page = data[offset : offset + STATE_PAGE_BYTES]
        done = offset + STATE_PAGE_BYTES >= len(data)
        replay = planned.replay if done else ()
        found.append(StateIs(place, request, planned.message, replay, offset, page, done, None))
    return found


class Pages:
    """Puts the pages of one answer together, in their order; after a `RemoteError` ask again."""

    def __init__(self, limits: PlacesConfig | None = None) -> None:
        self._most = (limits or PlacesConfig()).state_bytes * _ENCODED
        self._message: int | None = None
        self._data = bytearray()

    def add(self, page: StateIs) -> Plan | None:
        """The whole answer with its last page."""
        if page.reason is not None:
            return Unknown(page.reason)
        if self._message not in (None, page.message) or page.offset != len(self._data):
            raise RemoteError(Reason.MALFORMED, f"a page at {page.offset} instead of {len(self._data)}")
        if len(self._data) + len(page.data) > self._most:
            raise RemoteError(Reason.TOO_LARGE, "a state of more bytes than one may have")
        if not page.message and page.data:
            raise RemoteError(Reason.MALFORMED, "a state as of no message")
        if not page.done and not page.data:
            raise RemoteError(Reason.MALFORMED, "an empty page that is not the last")
        self._message = page.message
        self._data += page.data
        if not page.done:
            return None
        if not page.message:
            return Delta(page.replay, 0)
        return Full(page.message, bytes(self._data), page.replay, len(self._data))
