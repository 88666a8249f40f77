"""Orders of arrival, and what a node makes of one. As a program: the state of some rooms, for comparison."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from random import Random

from tests.rooms.chronicle import Chronicle, Wild, references, wild_history

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.plain_state import PlainState
from linnet.rooms.event_types import CONTROL_KINDS

Verdicts = dict[EventId, Reason | None]

TORN = Wild(spread=0.2, steps=50)
"""People who hear little of each other: in these rooms much hangs on how resolution orders power events."""


def any_order(luck: Random, events: Iterable[Event]) -> list[Event]:
    """These in an order in which each comes after all that it refers to."""
    left = {event.id: event for event in events}
    order: list[Event] = []
    while left:
        free = [event for event in left.values() if not any(each in left for each in references(event))]
        event = luck.choice(free)
        order.append(left.pop(event.id))
    return order


def played(chronicle: Chronicle, events: Iterable[Event]) -> tuple[ControlDag, Verdicts]:
    """What a node that gets these events in this order knows in the end."""
    dag = ControlDag(chronicle.create)
    verdicts: Verdicts = {}
    for event in events:
        if event.id != chronicle.create.id:
            refusal = dag.judge(event)
            if event.kind in CONTROL_KINDS:
                assert dag.add(event) == refusal
            verdicts[event.id] = None if refusal is None else refusal.reason
    return dag, verdicts


def digest(seed: int) -> str:
    """A hash of all that can be seen of a random room."""
    chronicle = wild_history(Random(seed), TORN)
    dag, verdicts = played(chronicle, chronicle.events)
    plain = PlainState(dag, chronicle.precedes)
    for event in chronicle.events:
        if event.tail.key is not None and event.kind not in CONTROL_KINDS and verdicts[event.id] is None:
            plain.add(event)
    view = dag.view()
    seen = (
        sorted(dag.current.items()),
        list(verdicts.items()),
        dag.heads,
        view.members(),
        view.relays(),
        plain.entries(),
        dag.between(()),
    )
    return hashlib.sha256(repr(seen).encode()).hexdigest()


def main() -> None:
    """Print the digests of so many rooms."""
    for seed in range(int(sys.argv[1])):
        print(digest(seed))


if __name__ == "__main__":
    main()
