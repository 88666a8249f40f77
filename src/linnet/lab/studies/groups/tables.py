"""The tables of the report: ours beside the published ones."""

from __future__ import annotations

from linnet.lab.report.parts import Cell, Grid
from linnet.lab.studies.groups.circle import PARTS
from linnet.lab.studies.groups.metrics import Growth
from linnet.lab.studies.groups.run import ALL, NEWCOMER, RECIPIENT, SENDER
from linnet.lab.studies.groups.tallying import OPERATIONS
from linnet.lab.studies.groups.targets import Target
from linnet.lab.studies.groups.view import NAMES, View
from linnet.lab.studies.groups.workload import ADD, MESSAGE, MULTI, PUBLISHED, SINGLE, UPDATES


def short(value: float | None, digits: int = 2) -> Cell:
    """A number for people."""
    return None if value is None else round(value, digits)


def reached(found: list[Target]) -> Grid:
    """Every target, and what it came to."""
    rows = [
        (
            each.says,
            f"{'at least' if each.at_least else 'at most'} {each.limit:,g} {each.unit}",
            short(each.measured, 4 if each.unit in ("R2", "ms") else 2),
            "reached" if each.met else "missed",
            each.detail,
        )
        for each in found
    ]
    return Grid(
        title="Targets",
        columns=("what", "limit", "measured", "", "made of"),
        rows=tuple(rows),
        note="Limits of bytes must hold. Limits of time depend on the machine and its load; a miss is told.",
    )


def sent(view: View) -> Grid:
    """Bytes of all clients."""
    rows: list[tuple[Cell, ...]] = []
    for operation in view.operations:
        for size in view.parameters.ordered:
            body = view.bytes(operation, size)
            printed = view.printed(f"bytes.{operation}.{size}")
            ratio = None if body is None or printed is None else body / printed
            parts = [
                view.bytes(operation, size, name) for name in ("operation_bytes", "ack_bytes", "wire_bytes")
            ]
            rows.append((NAMES[operation], size, body, *parts, short(printed, 0), short(ratio)))
    return Grid(
        title="Bytes sent by all clients",
        columns=("operation", "members", "bodies", "operation", "acks", "whole events", "published", "ratio"),
        rows=tuple(rows),
        note="Bodies are what is published, less the signature of each message, and with the prekeys that go "
        "with every seed, which are published nowhere else; whole events have a header, "
        "references, a signature. Published seeds have 128 bits, ours 256.",
    )


def spent(view: View) -> Grid:
    """Processor time of one client."""
    rows: list[tuple[Cell, ...]] = []
    for operation in PUBLISHED:
        for size in view.outcomes.sizes(operation):
            for role in (SENDER, RECIPIENT, NEWCOMER):
                found = view.outcomes.cpu(operation, size, role)
                if found is None:
                    continue
                parts = [short(view.cpu(operation, size, role, (part,)), 3) for part in PARTS]
                printed = view.printed(f"cpu.{operation}.{size}.{role}")
                ends = short(found.lowest, 3), short(found.highest, 3)
                theirs = _raw(view, operation, size, role)
                rows.append(
                    (NAMES[operation], size, role, short(found.mean, 3), *ends, *parts, printed, *theirs)
                )
    return Grid(
        title="Processor time of one client, ms",
        columns=(
            *("operation", "members", "client", "mean", "least run", "greatest run", *PARTS),
            *("published", "least", "greatest"),
        ),
        rows=tuple(rows),
        note="Published: an eight-core i7 and Java, the sender without making the operation. Least and "
        "greatest of single clients, where the raw measurements are here.",
    )


def _raw(view: View, operation: str, size: int, role: str) -> tuple[Cell, Cell]:
    seen = None if view.authors is None else view.authors.get((operation, size, role))
    return (None, None) if seen is None else (short(seen.least / 1e6, 3), short(seen.most / 1e6, 3))


def called(view: View) -> Grid:
    """What each role calls."""
    rows: list[tuple[Cell, ...]] = []
    for operation in view.operations:
        for size in view.parameters.ordered:
            for role in (SENDER, RECIPIENT, *((NEWCOMER,) if operation == ADD else ())):
                counts = [view.outcomes.count(operation, size, name, role) for name in OPERATIONS]
                if any(count is not None for count in counts):
                    rows.append((NAMES[operation], size, role, *counts))
    return Grid(
        title="Calls of primitives",
        columns=("operation", "members", "client", *OPERATIONS),
        rows=tuple(rows),
        note="Counted by the interpreter in the shipped code. A key generation is one fixed-base "
        "multiplication, also where the public half of a known secret is computed again.",
    )


def batches(view: View) -> Grid:
    """Acknowledgements one by one, and at once."""
    batch, rows = view.parameters.batch, list[tuple[Cell, ...]]()
    for size in view.parameters.ordered:
        for acks, name in ((SINGLE, "one by one"), (MULTI, "at once")):
            counts = [
                view.outcomes.count(UPDATES, size, measure, ALL, acks, batch)
                for measure in ("events", "body_bytes", "wire_bytes")
            ]
            times = [view.outcomes.cpu(UPDATES, size, role, acks=acks) for role in (SENDER, RECIPIENT)]
            each = [short(None if count is None else count / batch, 1) for count in counts]
            rows.append((size, name, *each, *(short(None if t is None else t.mean, 3) for t in times)))
    return Grid(
        title=f"An update of {batch} in a row, by how they are acknowledged",
        columns=("members", "acknowledged", "events", "bodies", "whole events", "sender ms", "recipient ms"),
        rows=tuple(rows),
        note="For each update. Timed at the largest size.",
    )


def growths(view: View) -> Grid:
    """Lines through bytes and times, ours and published."""
    rows: list[tuple[Cell, ...]] = []
    for operation in (name for name in PUBLISHED if name != MESSAGE):
        ours = [
            ("bodies, bytes", view.byte_growth(operation), view.printed_growth(f"bytes.{operation}")),
            ("whole events, bytes", view.byte_growth(operation, "wire_bytes"), None),
        ]
        for role in (SENDER, RECIPIENT, NEWCOMER):
            printed = view.printed_growth(f"cpu.{operation}", f".{role}")
            ours.append((f"{role}, ms", view.cpu_growth(operation, role), printed))
        for what, growth, printed in ours:
            if growth is not None:
                rows.append((operation, what, "ours", *_told(growth, "bytes" in what)))
            if printed is not None:
                rows.append((operation, what, "published", *_told(printed, "bytes" in what)))
    return Grid(
        title="Growth with the members of a group: a + b n",
        columns=(
            *("operation", "what", "whose", "a", "b", "R2", "power"),
            *("a member more, small groups", "large groups", "superlinear"),
        ),
        rows=tuple(rows),
        note="Superlinear are bytes if a member more costs over a tenth more between the two largest sizes "
        "than between the two smallest, and times if their power is above 1.1: single differences of these "
        "are noise.",
    )


def _told(growth: Growth, is_exact: bool) -> tuple[Cell, ...]:
    line = growth.line
    beyond = growth.is_superlinear if is_exact else growth.is_steep
    numbers = (line.intercept, line.slope, line.r_squared, growth.power, growth.first, growth.last)
    return (*(short(number, 4) for number in numbers), "yes" if beyond else "no")
