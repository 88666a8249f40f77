"""The plots of the study."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report import plots
from linnet.lab.report.parts import Plot
from linnet.lab.report.plots import Line
from linnet.lab.studies.groups.run import RECIPIENT, SENDER
from linnet.lab.studies.groups.targets import followed
from linnet.lab.studies.groups.view import View
from linnet.lab.studies.groups.workload import ADD, CREATE, REMOVE, SCALED, UPDATE

_DRAWN = (CREATE, ADD, UPDATE, REMOVE)


def traffic(view: View) -> Plot:
    """Bytes of all clients, over the size of the group."""
    sizes, series = view.parameters.ordered, list[Line]()
    for operation in _DRAWN:
        found = [(size, view.bytes(operation, size)) for size in sizes]
        ours = [(size, value / 1000) for size, value in found if value is not None]
        series.append(Line(label=operation, x=[x for x, _ in ours], y=[y for _, y in ours]))
        printed = [(size, view.printed(f"bytes.{operation}.{size}")) for size in sizes]
        theirs = [(size, value / 1000) for size, value in printed if value is not None]
        if theirs:
            label = f"{operation}, published"
            x, y = [x for x, _ in theirs], [y for _, y in theirs]
            series.append(Line(label=label, x=x, y=y, published=True, like=operation))
    svg = plots.lines(
        series, title="Bytes sent by all clients", x_label="members", y_label="bodies", y_unit="kB"
    )
    return Plot(
        title="Traffic",
        svg=svg,
        caption="Bodies of an operation and of all its acknowledgements, each counted once; open markers are "
        "published, with signatures, which here belong to the events around the bodies.",
    )


def times(view: View, role: str) -> Plot:
    """Processor time of a role, over the size of the group."""
    series = list[Line]()
    for operation in _DRAWN:
        sizes = view.outcomes.sizes(operation)
        found = {size: view.outcomes.cpu(operation, size, role) for size in sizes}
        spreads = {size: value for size, value in found.items() if value is not None}
        series.append(
            Line(
                label=operation,
                x=list(spreads),
                y=[each.mean for each in spreads.values()],
                low=[each.lowest for each in spreads.values()],
                high=[each.highest for each in spreads.values()],
            )
        )
        printed = {size: view.printed(f"cpu.{operation}.{size}.{role}") for size in sizes}
        theirs = {size: value for size, value in printed.items() if value is not None}
        if theirs:
            series.append(
                Line(
                    label=f"{operation}, published",
                    x=list(theirs),
                    y=list(theirs.values()),
                    published=True,
                    like=operation,
                )
            )
    svg = plots.lines(
        series,
        title=f"Processor time of the {role}",
        x_label="members",
        y_label="of one client, all acknowledgements included",
        y_unit="ms",
    )
    caption = "Ours in Python on this machine, theirs in Java on another: compare shapes rather than heights."
    if role == SENDER:
        caption += " Theirs lack the making of the operation."
    return Plot(title=f"Processor time: {role}", svg=svg, caption=caption)


def scaling(view: View) -> Iterator[Plot]:
    """Updates in larger groups."""
    sizes = view.outcomes.sizes(SCALED)
    growth = view.cpu_growth(SCALED, SENDER)
    if growth is None:
        return
    spent = {size: view.cpu(SCALED, size, SENDER) for size in sizes}
    ours = {size: value for size, value in spent.items() if value is not None}
    series = [
        Line(label="sender of an update", x=list(ours), y=list(ours.values())),
        Line(label="line through it", x=sizes, y=[growth.line.at(size) for size in sizes]),
    ]
    svg = plots.lines(
        series, title="Updates in larger groups", x_label="members", y_label="time", y_unit="ms"
    )
    yield Plot(
        title="Growth of the sender's work",
        svg=svg,
        caption="A straight line is as it should be: a key for each.",
    )
    costs = {size: followed(view, size) for size in sizes}
    each = {size: value for size, value in costs.items() if value is not None}
    if each:
        series = [
            Line(label="an acknowledgement, its signature included", x=list(each), y=list(each.values()))
        ]
        svg = plots.lines(
            series,
            title="What a recipient does for each event",
            x_label="members",
            y_label="time",
            y_unit="µs",
        )
        yield Plot(
            title="Growth of a recipient's work",
            svg=svg,
            caption="Level is as it should be: no search, no copy.",
        )


def all_times(view: View) -> tuple[Plot, ...]:
    """Both roles."""
    return times(view, SENDER), times(view, RECIPIENT)
