"""The figures of the study, each beside the published one if there is one."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Cell, Figure
from linnet.lab.studies.groups.circle import PARTS
from linnet.lab.studies.groups.run import NEWCOMER, RECIPIENT, SENDER
from linnet.lab.studies.groups.targets import targets
from linnet.lab.studies.groups.view import NAMES, View
from linnet.lab.studies.groups.workload import ADD, MESSAGE, MULTI, PUBLISHED, SINGLE, UPDATE, UPDATES

_HEARD = tuple(part for part in PARTS if part != "make")


def figures(view: View) -> Iterator[Figure]:
    """All of them."""
    for operation in view.operations:
        for size in view.parameters.ordered:
            yield from _bytes(view, operation, size)
    yield from _printed(view)
    for operation in PUBLISHED:
        for size in view.outcomes.sizes(operation):
            yield from _times(view, operation, size)
    yield from _making(view)
    yield from _batches(view)
    yield from _growths(view)
    for target in targets(view):
        verdict = "reached" if target.met else "missed"
        bound = "at least" if target.at_least else "at most"
        yield Figure(
            id=f"target.{target.id}",
            title=target.says,
            unit=target.unit,
            measured=round(target.measured, 4),
            note=f"{bound} {target.limit:g}: {verdict}; {target.detail}".rstrip("; "),
        )


def _figure(view: View, id: str, title: str, unit: str, measured: Cell, note: str = "") -> Figure:
    if isinstance(measured, float):
        measured = round(measured, 4)
    if id in view.published:
        return view.published.figure(id, title, unit, measured, note)
    return Figure(id=id, title=title, unit=unit, measured=measured, note=note)


def _bytes(view: View, operation: str, size: int) -> Iterator[Figure]:
    body, wire = view.bytes(operation, size), view.bytes(operation, size, "wire_bytes")
    name = f"{NAMES[operation]}, {size} members"
    yield _figure(view, f"bytes.{operation}.{size}", f"bodies: {name}", "bytes", body)
    yield _figure(view, f"wire.{operation}.{size}", f"whole events: {name}", "bytes", wire)


def _printed(view: View) -> Iterator[Figure]:
    for operation in PUBLISHED:
        body = view.bytes(operation, 128)
        if body is not None and operation != MESSAGE:
            title = f"bodies: {NAMES[operation]}, 128 members"
            yield _figure(view, f"printed.{operation}.128", title, "KiB", body / 1024)
    body = view.bytes(MESSAGE, view.parameters.ordered[0])
    if body is not None:
        note = "Body and clear bytes; padded to 64, without the signature, which is the event's."
        title = "a message beyond its 32 bytes of text"
        yield _figure(view, "overhead.message", title, "bytes", body - 32, note)


def _times(view: View, operation: str, size: int) -> Iterator[Figure]:
    for role in (SENDER, RECIPIENT, *((NEWCOMER,) if operation == ADD else ())):
        found = view.outcomes.cpu(operation, size, role)
        if found is None:
            continue
        note = f"{found.count} runs, {found.lowest:.3f} to {found.highest:.3f} ms."
        heard = view.cpu(operation, size, role, _HEARD)
        if role == SENDER and heard is not None and operation != MESSAGE:
            note += f" Without making it: {heard:.3f} ms."
        title = f"processor time of the {role}: {NAMES[operation]}, {size} members"
        yield _figure(view, f"cpu.{operation}.{size}.{role}", title, "ms", found.mean, note)


def _making(view: View) -> Iterator[Figure]:
    made = view.cpu(UPDATE, 128, SENDER, ("make",))
    if made is not None:
        yield _figure(view, "making.update.128", "making an update alone, 128 members", "ms", made)


def _batches(view: View) -> Iterator[Figure]:
    """What an update costs of several in a row, by how they are acknowledged."""
    batch, size = view.parameters.batch, view.parameters.largest
    for acks, name in ((SINGLE, "one by one"), (MULTI, "at once")):
        what = f"an update of {batch}, {size} members, acknowledged {name}"
        for measure, title in (("body_bytes", "bodies"), ("wire_bytes", "whole events")):
            found = view.outcomes.count(UPDATES, size, measure, acks=acks, batch=batch)
            if found is not None:
                yield _figure(view, f"batch.{acks}.{measure}", f"{title}: {what}", "bytes", found / batch)
        for role in (SENDER, RECIPIENT):
            spent = view.outcomes.cpu(UPDATES, size, role, acks=acks)
            if spent is not None:
                title = f"processor time of the {role}: {what}"
                yield _figure(view, f"batch.{acks}.{role}", title, "ms", spent.mean)


def _growths(view: View) -> Iterator[Figure]:
    for operation in PUBLISHED:
        growth = view.byte_growth(operation)
        if growth is not None:
            line, title = growth.line, f"bodies of {NAMES[operation]}"
            yield _figure(view, f"growth.{operation}.slope", f"{title}, a member more", "bytes", line.slope)
            yield _figure(view, f"growth.{operation}.r2", f"{title}, fit of a line", "R2", line.r_squared)
