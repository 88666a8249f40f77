"""What is to be reached: ten targets, some of bytes, some of time, and why one is missed if it is.

Bytes must hold, and are checks of the study. Times depend on the machine and on what else it does: a
target that is missed is told, and the study goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from linnet.lab.studies.groups.metrics import fit_line
from linnet.lab.studies.groups.operations import TEXT
from linnet.lab.studies.groups.run import ALL, NEWCOMER, RECIPIENT, SENDER
from linnet.lab.studies.groups.view import View
from linnet.lab.studies.groups.workload import (
    ADD,
    CATCH_UP,
    CREATE,
    FIRST_UPDATE,
    FUZZ,
    MESSAGE,
    MULTI,
    PENDING,
    SCALED,
    SINGLE,
    STATE,
    UPDATE,
    VIEW,
)

GROUP, FEWER = 128, 32
"""The sizes that targets name."""
MISSED, FUZZED = 1_000, 1_000
"""Updates of the catch-up and random groups that targets name."""
STEADY = 1.5
"""A message may cost so much more in the largest group than in one of eight."""
STRAIGHT = 0.98
_HEARD = ("check", "take", "follow")


class Target(Struct, frozen=True, kw_only=True):
    """One limit, and what was measured."""

    id: str
    says: str
    unit: str
    limit: float
    measured: float
    is_bytes: bool = False
    """Whether it must hold for the study to be right."""
    at_least: bool = False
    detail: str = ""
    """What it is made of: the cause, where it is missed."""

    @property
    def met(self) -> bool:
        """Whether it holds."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def targets(view: View) -> list[Target]:
    """All whose figures were run."""
    return [*_operations(view), *_messages(view), *_catch_up(view), *_single_parts(view), *_scaling(view)]


def _present(found: Iterable[Target | None]) -> Iterator[Target]:
    return (each for each in found if each is not None)


def _operations(view: View) -> Iterator[Target]:
    old = [(role, view.cpu(ADD, GROUP, role)) for role in (SENDER, RECIPIENT)]
    slower = max((pair for pair in old if pair[1] is not None), key=lambda pair: pair[1] or 0, default=None)
    yield from _present(
        [
            _time(view, "T1", UPDATE, SENDER, 60),
            _time(view, "T1", UPDATE, RECIPIENT, 30),
            _bytes(view, "T2", UPDATE, GROUP, 40_553),
            _bytes(view, "T2", UPDATE, FEWER, 10_022),
            _bytes(view, "T2", FIRST_UPDATE, GROUP, 40_553),
            _time(view, "T3", CREATE, SENDER, 80),
            _time(view, "T3", CREATE, RECIPIENT, 25),
            _bytes(view, "T3", CREATE, GROUP, 46_000),
            None if slower is None else _time(view, "T4", ADD, slower[0], 35),
            _time(view, "T4", ADD, NEWCOMER, 60),
            _bytes(view, "T4", ADD, GROUP, 60_000),
        ]
    )


def _time(view: View, target: str, operation: str, role: str, limit: float) -> Target | None:
    measured = view.cpu(operation, GROUP, role)
    if measured is None:
        return None
    return Target(
        id=f"{target}.{operation}.{role}",
        says=f"{target}: {operation} in a group of {GROUP}, {role}, all acknowledgements included",
        unit="ms",
        limit=limit,
        measured=measured,
        detail=_made_of(view, operation, GROUP, role),
    )


def _made_of(view: View, operation: str, size: int, role: str) -> str:
    """Where the time goes."""
    names = {
        "make": "making",
        "sign": "signing",
        "check": "signatures of others",
        "take": "taking",
        "follow": "following acknowledgements",
    }
    parts = {name: view.cpu(operation, size, role, (part,)) for part, name in names.items()}
    return ", ".join(f"{name} {value:.2f} ms" for name, value in parts.items() if value)


def _bytes(view: View, target: str, operation: str, size: int, limit: int) -> Target | None:
    measured = view.bytes(operation, size)
    if measured is None:
        return None
    wire = view.bytes(operation, size, "wire_bytes")
    return Target(
        id=f"{target}.{operation}.{size}.bytes",
        says=f"{target}: bodies of {operation} in a group of {size}, acknowledgements included",
        unit="bytes",
        limit=limit,
        measured=measured,
        is_bytes=True,
        detail=f"{wire} bytes as whole events",
    )


def _messages(view: View) -> Iterator[Target]:
    sizes = view.parameters.ordered
    found = {size: view.bytes(MESSAGE, size) for size in sizes}
    sent = [value for value in found.values() if value is not None]
    if sent:
        yield Target(
            id="T5.overhead",
            says="T5: a message's body and clear bytes, beyond its text of 32 bytes",
            unit="bytes",
            limit=126,
            measured=max(sent) - len(TEXT),
            is_bytes=True,
            detail=f"{view.bytes(MESSAGE, sizes[0], 'wire_bytes')} bytes as a whole event",
        )
        yield Target(
            id="T5.constant",
            says="T5: how much it differs between groups of all sizes",
            unit="bytes",
            limit=0,
            measured=max(sent) - min(sent),
            is_bytes=True,
        )
    size = GROUP if GROUP in sizes else sizes[-1]
    for role in (SENDER, RECIPIENT):
        measured = view.cpu(MESSAGE, size, role)
        if measured is not None:
            yield Target(
                id=f"T5.{role}",
                says=f"T5: a message in a group of {size}, {role}",
                unit="ms",
                limit=0.25,
                measured=measured,
                detail=_made_of(view, MESSAGE, size, role),
            )


def _catch_up(view: View) -> Iterator[Target]:
    size, missed = view.parameters.largest, view.parameters.missed
    for acks, limit, name in ((SINGLE, 26.0, "one by one"), (MULTI, 8.0, "gathered")):
        each = view.outcomes.each(CATCH_UP, size, RECIPIENT, _HEARD, acks)
        whole = view.outcomes.cpu(CATCH_UP, size, RECIPIENT, _HEARD, acks)
        if each is None or whole is None:
            continue
        parts = [view.outcomes.each(CATCH_UP, size, RECIPIENT, (part,), acks) or 0.0 for part in _HEARD]
        detail = (
            f"a signature {parts[0]:.0f} µs, an update {parts[1]:.0f} µs, acknowledgements {parts[2]:.0f} µs"
        )
        if acks == SINGLE:
            yield Target(
                id="T6.each",
                says=f"T6: an operation or acknowledgement that was missed, in a group of {size}",
                unit="µs",
                limit=200,
                measured=each,
                detail=detail,
            )
        yield Target(
            id=f"T6.{acks}",
            says=f"T6: {MISSED:,} missed updates, group of {size}, acknowledgements {name}; from {missed}",
            unit="s",
            limit=limit,
            measured=whole.mean * MISSED / 1e3,
            detail=detail,
        )


def _single_parts(view: View) -> Iterator[Target]:
    outcomes, size = view.outcomes, view.parameters.largest
    looked = outcomes.each(VIEW, size, ALL, ("fresh",), SINGLE)
    if looked is not None:
        known = outcomes.each(VIEW, size, ALL, ("known",), SINGLE)
        yield Target(
            id="T7",
            says=f"T7: a view of {size} members after 100 changes",
            unit="µs",
            limit=50,
            measured=looked,
            detail=f"asked again: {known:.2f} µs",
        )
    yield from _states(view)
    fuzzed = outcomes.cpu(FUZZ, 6, ALL, ("run",))
    if fuzzed is not None:
        run = fuzzed.mean * view.parameters.fuzz_ops / 1e3
        yield Target(
            id="T9",
            says=f"T9: {FUZZED:,} random groups of {view.parameters.fuzz_ops} operations; "
            f"from {view.parameters.fuzz}",
            unit="s",
            limit=600,
            measured=run * FUZZED,
            detail=f"{run:.2f} s each, with partitions, messages and the check at the end",
        )


def _states(view: View) -> Iterator[Target]:
    size = view.parameters.largest
    found = {
        pending: view.outcomes.count(STATE, size, "state_bytes", RECIPIENT, batch=pending)
        for pending in PENDING
    }
    sizes = {pending: float(value) for pending, value in found.items() if value is not None}
    if len(sizes) < 2:
        return
    fit = fit_line(list(sizes), list(sizes.values()))
    detail = f"{fit.slope:.0f} bytes for each update that is not acknowledged"
    yield Target(
        id="T8.idle",
        says=f"T8: the state of a member, {size} members, nothing pending",
        unit="bytes",
        limit=200_000,
        measured=sizes[0],
        is_bytes=True,
        detail=detail,
    )
    yield Target(
        id="T8.linear",
        says="T8: how well a line fits the state over pending updates",
        unit="R2",
        limit=STRAIGHT,
        measured=fit.r_squared,
        is_bytes=True,
        at_least=True,
        detail=detail,
    )


def _scaling(view: View) -> Iterator[Target]:
    sizes = view.outcomes.sizes(SCALED)
    if len(sizes) < 3:
        return
    growth = view.cpu_growth(SCALED, SENDER)
    each = {size: followed(view, size) for size in sizes}
    if growth is not None:
        yield Target(
            id="T10.sender",
            says=f"T10: a line through an update's sender, groups of {sizes[0]} to {sizes[-1]}",
            unit="R2",
            limit=STRAIGHT,
            measured=growth.line.r_squared,
            at_least=True,
            detail=f"{growth.line.slope:.3f} ms a member; power {growth.power:.2f}",
        )
    first, last = each[sizes[0]], each[sizes[-1]]
    if first and last:
        yield Target(
            id="T10.recipient",
            says=f"T10: an acknowledgement at a recipient among {sizes[-1]}, by that among {sizes[0]}",
            unit="ratio",
            limit=STEADY,
            measured=last / first,
            detail=", ".join(f"{size}: {cost:.0f} µs" for size, cost in each.items() if cost is not None),
        )


def followed(view: View, size: int) -> float | None:
    """Microseconds of one acknowledgement, its signature included."""
    parts = [view.outcomes.each(SCALED, size, RECIPIENT, (part,), SINGLE) for part in ("check", "follow")]
    return None if None in parts else sum(part for part in parts if part is not None)
