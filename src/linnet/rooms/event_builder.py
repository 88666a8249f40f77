"""Events of our own: where they stand in the DAG, signed."""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.errors import Refused
from linnet.core.ids import EventId, TopicId
from linnet.core.limits import BODY_BYTES, DEPENDENCIES, KEY_CHARS, KIND_CHARS, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.core.stores import Damage
from linnet.delivery.context import Context
from linnet.delivery.dag import Dag
from linnet.event.event import Event, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.content import CREATE, Create, body_of

Seal = Callable[[int, EventId | None, Tail], Tail]
"""An event's tail with its body encrypted, given its number and predecessor; its other fields are bound."""

NO_TOPIC = TopicId(bytes(32))
"""The topic of a create event, whose room is named by its own id."""


def found(context: Context, content: Create, now: float) -> Verified:
    """The first event of a new room."""
    tail = Tail(None, None, 0, None, CREATE, "", int(now * 1000), None, body_of(content))
    return sign_unit(context.key, NO_TOPIC, context.author, context.device, 0, None, (tail,))


class Author:
    """Our own chain in one room."""

    def __init__(
        self, context: Context, control: ControlDag, dag: Dag, height_of: Callable[[EventId], int]
    ) -> None:
        self._context = context
        self._control = control
        self._dag = dag
        self._height_of = height_of
        """The height of an event that is known, in the DAG or not yet."""
        self.seq = -1
        self.prev: EventId | None = None

    def saw(self, event: Event) -> None:
        """An event of ours, from the store or just made."""
        if event.author == self._context.author and event.device == self._context.device:
            seq = event.seq if event.seq is not None else -1
            if seq > self.seq:
                self.seq, self.prev = seq, event.id

    def lost(self, damage: Damage) -> None:
        """A unit of the log is damaged. If it is ours, its number must not be used again."""
        is_ours = damage.author == self._context.author and damage.device == self._context.device
        if is_ours and damage.last is not None and damage.last > self.seq:
            self.seq, self.prev = damage.last, damage.head

    def make(
        self,
        kind: str,
        key: str | None,
        body: bytes,
        now: float,
        after: tuple[EventId, ...] | None = None,
        seal: Seal | None = None,
        control: tuple[EventId, ...] | None = None,
    ) -> Verified:
        """An event after all that is known here, or just after these; `Refused` if it breaks a limit.

        `control` names other control heads than those of all that is known.

        Nothing is remembered of it before `saw`: whoever made it may find that it is not allowed.
        """
        check_limits(kind, key, body)
        heads = self._dag.heads if after is None else after
        control = (self._control.heads if control is None else control)[:DEPENDENCIES]
        prev = self.prev
        deps = heads[:DEPENDENCIES] or ((prev,) if prev is not None else control)
        concurrent = heads[DEPENDENCIES : 2 * DEPENDENCIES] or None
        refs = (*deps, *(concurrent or ()), *control, *(() if prev is None else (prev,)))
        height = min(LARGEST_COUNT, 1 + max(map(self._height_of, refs)))
        tail = Tail(deps, concurrent, height, control, kind, key, int(now * 1000), None, body)
        context = self._context
        if seal is not None:
            tail = seal(self.seq + 1, prev, tail)
        return sign_unit(
            context.key, self._control.room, context.author, context.device, self.seq + 1, prev, (tail,)
        )


def check_limits(kind: str, key: str | None, body: bytes) -> None:
    """Raise `Refused` if nobody would take an event like this."""
    if not 1 <= len(kind) <= KIND_CHARS:
        raise Refused(Reason.MALFORMED, f"a kind has 1 to {KIND_CHARS} characters")
    if key is not None and len(key) > KEY_CHARS:
        raise Refused(Reason.TOO_LARGE, f"a key has at most {KEY_CHARS} characters")
    if len(body) > BODY_BYTES:
        raise Refused(Reason.TOO_LARGE, f"a body of {len(body)} bytes, at most {BODY_BYTES} are allowed")


def causes_of(event: Event) -> tuple[EventId, ...]:
    """What an event comes after, each once: all that it refers to, but for control heads as such."""
    tail = event.tail
    prev = () if event.prev is None else (event.prev,)
    return tuple(dict.fromkeys((*(tail.deps or ()), *(tail.concurrent or ()), *prev)))


def refs_of(event: Event) -> tuple[EventId, ...]:
    """All that an event refers to, each once."""
    tail = event.tail
    prev = () if event.prev is None else (event.prev,)
    return tuple(dict.fromkeys((*(tail.deps or ()), *(tail.concurrent or ()), *(tail.control or ()), *prev)))
