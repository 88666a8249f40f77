"""The state line of a place as it is kept: a base, the messages applied since, those that wait for others.

All of it is in cells, so that a restart goes on exactly here. What is written for a message is in proportion
to what it changes, not to the state.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from linnet.core.ids import TopicId
from linnet.core.stores import Cells
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state import Changes, State
from linnet.places.config import PlacesConfig

MESSAGE_BYTES = 200
"""About what a message costs beside its modifiers when it is replayed: event, head, signature."""

_META = b"m"
_VARIABLE = b"v"
_STEP = b"s"
_HELD = b"h"
_LET_GO = b"g"


class Step(Struct, frozen=True, array_like=True):
    """A message of the state line."""

    message: int
    delta: int
    """0: the state begins anew here."""
    modifiers: tuple[Modifier, ...]
    hash: bytes | None

    @property
    def before(self) -> int:
        """The message of the line before this one."""
        return self.message - self.delta

    @property
    def cost(self) -> int:
        """Bytes that it takes to replay it, about."""
        return MESSAGE_BYTES + sum(len(item.name) + len(item.value) + 4 for item in self.modifiers)


class Meta(Struct, frozen=True, array_like=True):
    """What else is known of the line."""

    base: int = 0
    """The base is the state as of this message; 0: before all."""
    base_signed: bool = False
    """Whether the hash of that message was found right."""
    stopped: int = 0
    """A message that cannot be applied; 0: none."""
    lost: bool = False
    """Whether the values of the base are not known: it is none of an empty state, and has to be learned."""


_encode = msgspec.msgpack.Encoder().encode
_decode_step = msgspec.msgpack.Decoder(Step).decode
_decode_meta = msgspec.msgpack.Decoder(Meta).decode


class StateLog:
    """Reads everything once, at the beginning; then writes what changes."""

    def __init__(self, place: TopicId, cells: Cells, limits: PlacesConfig) -> None:
        self._cells = cells
        self._space = f"place state {place.hex()}"
        self.meta = Meta()
        self.applied: dict[int, Step] = {}
        """Since the base, in their order."""
        self.held: dict[int, Step] = {}
        self.let_go: dict[int, None] = {}
        variables: dict[str, bytes] = {}
        for key, value in cells.scan(self._space):
            kind, rest = key[:1], key[1:]
            if kind == _META:
                self.meta = _decode_meta(value)
            elif kind == _VARIABLE:
                variables[rest.decode()] = value
            elif kind == _LET_GO:
                self.let_go[int.from_bytes(rest, "big")] = None
            else:
                (self.applied if kind == _STEP else self.held)[int.from_bytes(rest, "big")] = _decode_step(
                    value
                )
        self.base = State(limits, variables)
        self.applied_cost = sum(step.cost for step in self.applied.values())
        self.held_cost = sum(step.cost for step in self.held.values())

    @property
    def last(self) -> int:
        """The last message that was applied; 0: none."""
        return next(reversed(self.applied), self.meta.base)

    def set_meta(self, meta: Meta) -> None:
        """Keep this."""
        if meta != self.meta:
            self.meta = meta
            self._cells.put(self._space, _META, _encode(meta))

    def change_base(self, changes: Changes) -> None:
        """Set and remove variables of the base."""
        self.base.change(changes)
        for name, value in changes.items():
            key = _VARIABLE + name.encode()
            if value is None:
                self._cells.delete(self._space, key)
            else:
                self._cells.put(self._space, key, value)

    def apply(self, step: Step) -> None:
        """This one is applied now."""
        self.applied[step.message] = step
        self.applied_cost += step.cost
        self._cells.put(self._space, _STEP + _number(step.message), _encode(step))

    def take_back(self, message: int) -> Step:
        """This one is not among the applied ones any more: undone, or in the base."""
        step = self.applied.pop(message)
        self.applied_cost -= step.cost
        self._cells.delete(self._space, _STEP + _number(message))
        return step

    def hold(self, step: Step) -> None:
        """This one waits."""
        self.held[step.message] = step
        self.held_cost += step.cost
        self._cells.put(self._space, _HELD + _number(step.message), _encode(step))

    def release(self, message: int) -> Step:
        """This one waits no longer."""
        step = self.held.pop(message)
        self.held_cost -= step.cost
        self._cells.delete(self._space, _HELD + _number(message))
        return step

    def remember(self, message: int) -> None:
        """There was no room for this one: it has to be asked for again."""
        self.let_go[message] = None
        self._cells.put(self._space, _LET_GO + _number(message), b"")

    def forget(self, message: int) -> None:
        """This one need not be asked for again."""
        if message in self.let_go:
            del self.let_go[message]
            self._cells.delete(self._space, _LET_GO + _number(message))


def _number(message: int) -> bytes:
    return message.to_bytes(8, "big")
