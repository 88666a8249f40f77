"""The numbers of the study, each with the published one if there is one."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Figure
from linnet.lab.studies.overlay import bounds
from linnet.lab.studies.overlay.mending import JOIN
from linnet.lab.studies.overlay.parameters import FANOUTS
from linnet.lab.studies.overlay.view import View
from linnet.lab.studies.overlay.workload import (
    CHOOSING,
    DEGREES,
    FILTERS,
    LIVING,
    MENDING,
    RINGS,
    SAMPLING,
    SCALE,
)

_RATIOS = (
    "hit_ratio",
    "hit_ratio_after_repair",
    "connected_topics",
    "liar_view_share",
    "liar_view_share_peak",
)


def figures(view: View) -> Iterator[Figure]:
    """All of them."""
    yield from _sampling(view)
    yield from _filters(view)
    yield from _rings(view)
    yield from _living(view)
    yield from _degrees(view)
    yield from _mending(view)
    yield from _choosing(view)
    yield from bounds.figures(view.outcomes)
    yield from _scale(view)


def _id(*parts: str) -> str:
    words = ".".join(parts).lower()
    return "".join(letter if letter.isalnum() or letter == "." else "_" for letter in words)


def _figure(id: str, title: str, unit: str, value: float | None, digits: int = 4) -> Iterator[Figure]:
    if value is not None:
        yield Figure(id=id, title=title, unit=unit, measured=round(value, digits))


def _sampling(view: View) -> Iterator[Figure]:
    for setting in view.outcomes.settings(SAMPLING):
        way, attack, share, *sybils = setting.split("|")
        what = f"{way}, {attack}, {share} liars" + (f", {sybils[0]} invented" if sybils else "")
        name = _id("sampling", way, attack, share, *sybils)
        yield from _figure(f"{name}.peak", f"liars in views at most: {what}", "share", view.peak(setting))
        yield from _figure(f"{name}.end", f"liars in views at the end: {what}", "share", view.end(setting))
        isolated = view.outcomes.mean(SAMPLING, setting, "isolated")
        yield from _figure(f"{name}.isolated", f"nodes that know liars alone: {what}", "nodes", isolated)
        if attack == "eclipse":
            victim = view.end(setting, "victim_lying", "victim_places")
            yield from _figure(f"{name}.victim", f"liars in the victim's view: {what}", "share", victim)


def _filters(view: View) -> Iterator[Figure]:
    for setting in view.outcomes.settings(FILTERS):
        origin, hashes, epsilon = setting.split("|")
        what = f"{origin}, {hashes} hashes, epsilon {epsilon}"
        for measure, title in (("utility", "common topics found"), ("attack", "area of the attack")):
            value = view.outcomes.ratio(FILTERS, setting, measure)
            name = _id("filters", origin, f"k{hashes}", f"e{epsilon}", measure)
            yield from _figure(name, f"{title}: {what}", "share", value)


def _rings(view: View) -> Iterator[Figure]:
    growth = view.published["hops.growth"]
    for nodes in view.parameters.ring_sizes:
        for fanout in FANOUTS:
            value = view.hops(nodes, fanout)
            if value is not None:
                yield Figure(
                    id=f"hops.{nodes}.{fanout}",
                    title=f"mean hops among {nodes} members, fan-out {fanout}",
                    unit="hops",
                    measured=round(value, 3),
                    published=growth.value,
                    source=growth.source,
                )
    for setting in view.outcomes.settings(RINGS):
        nodes_text, fanout_text, failed = setting.split("|")
        if failed != "0":
            what = f"{nodes_text} members, {float(failed):.0%} failed, fan-out {fanout_text}"
            title = f"reached right after a failure: {what}"
            value = view.outcomes.ratio(RINGS, setting, "hit_ratio")
            yield from _figure(_id("failed", nodes_text, fanout_text, failed), title, "share", value, 6)


def _living(view: View) -> Iterator[Figure]:
    for setting in view.outcomes.settings(LIVING):
        origin, _, name = setting.partition("|")
        for measure in _RATIOS:
            value = view.outcomes.ratio(LIVING, setting, measure)
            title = f"{measure.replace('_', ' ')}: {origin}, {name}"
            yield from _figure(_id("living", origin, name, measure), title, "share", value, 6)
        for measure in ("mean_degree", "mean_hops", "mean_delay_ms", "duplication", "join_rounds"):
            value = view.outcomes.mean(LIVING, setting, measure, 1000)
            title = f"{measure.replace('_', ' ')}: {origin}, {name}"
            yield from _figure(_id("living", origin, name, measure), title, "", value, 3)


def _degrees(view: View) -> Iterator[Figure]:
    for setting in view.outcomes.settings(DEGREES):
        order, each = setting.split("|")
        value = view.outcomes.mean(DEGREES, setting, "mean_degree", 1000)
        title = f"neighbours of a node with {each} subscriptions, places by {order}"
        yield from _figure(_id("degree", order, each), title, "nodes", value, 2)


def _mending(view: View) -> Iterator[Figure]:
    units = {"whole_after_ms": ("s", 1000.0), "repaired_rounds": ("rounds", 1.0)}
    for setting in view.outcomes.settings(MENDING):
        kind, share = setting.split("|")
        for measure in ("hit_ratio_at_once", "hit_ratio_after_repair", "rings_right"):
            value = view.outcomes.ratio(MENDING, setting, measure)
            title = f"{measure.replace('_', ' ')}: {kind} {share}"
            yield from _figure(_id("mending", kind, share, measure), title, "share", value, 6)
        for measure, (unit, by) in units.items():
            value = view.outcomes.mean(MENDING, setting, measure, by)
            title = f"{measure.replace('_', ' ').removesuffix(' ms')}: {kind} {share}"
            yield from _figure(_id("mending", kind, share, measure), title, unit, value, 2)
        for size in ("small", "middle", "large") if kind == JOIN else ():
            value = view.outcomes.mean(MENDING, setting, f"join_ms_{size}", 1000)
            title = f"until a newcomer has a neighbour in a {size} topic"
            yield from _figure(_id("join", size), title, "s", value, 1)


def _choosing(view: View) -> Iterator[Figure]:
    for overlay in view.outcomes.settings(CHOOSING):
        for measure, unit, by in (
            ("delay_ms", "ms", 1.0),
            ("copies", "copies", 1000.0),
            ("hops", "hops", 1000.0),
            ("degree", "nodes", 1000.0),
            ("hourly_bytes", "bytes", 1.0),
            ("joining_bytes", "bytes", 1.0),
            ("repaired_rounds", "rounds", 1.0),
        ):
            value = view.outcomes.mean(CHOOSING, overlay, measure, by)
            title = f"{measure.replace('_', ' ')}: {overlay}"
            yield from _figure(_id("choosing", overlay, measure), title, unit, value, 3)


def _scale(view: View) -> Iterator[Figure]:
    for setting in view.outcomes.settings(SCALE):
        printed = view.published["scale.nodes"]
        note = f"{printed.note} Here all are in one process."
        yield Figure(
            id="scale.nodes",
            title="nodes and topics of the largest overlay",
            unit="nodes",
            measured=int(setting),
            published=printed.value,
            source=printed.source,
            note=note,
        )
        for measure, unit, by in (
            ("seconds", "s", 1.0),
            ("memory_mb", "MB", 1.0),
            ("hit_ratio", "share", 1e6),
            ("hit_ratio_after_repair", "share", 1e6),
            ("connected_topics", "share", 1e6),
            ("mean_degree", "nodes", 1000.0),
        ):
            value = view.outcomes.mean(SCALE, setting, measure, by)
            title = f"{measure.replace('_', ' ')} of the largest overlay"
            yield from _figure(_id("scale", measure), title, unit, value, 6)
