"""The tables of the report."""

from __future__ import annotations

from linnet.lab.report.parts import Cell, Grid
from linnet.lab.studies.overlay.attacks import WAYS
from linnet.lab.studies.overlay.choosing import RING, TRACKER
from linnet.lab.studies.overlay.parameters import EPSILONS, HASHES
from linnet.lab.studies.overlay.view import View
from linnet.lab.studies.overlay.workload import CHOOSING, FILTERS, LIVING, MENDING, RINGS, SAMPLING

_ADVICE = (
    "Choose a tracker where one can be had that everyone may know of: joining is quick, being there costs "
    "little, and delays are those of a random graph. Choose rings where nobody is to learn who is interested "
    "in what, or where no node can be counted on: they cost each node gossip all the time, and a longer "
    "search to join."
)


def short(value: float | None, digits: int = 3) -> Cell:
    """A number for people."""
    return None if value is None else round(value, digits)


def attacks(view: View) -> Grid:
    """Liars in the views of honest nodes."""
    rows: list[tuple[Cell, ...]] = []
    for setting in view.outcomes.settings(SAMPLING):
        way, attack, share, *sybils = setting.split("|")
        isolated = view.outcomes.mean(SAMPLING, setting, "isolated")
        deviation = view.outcomes.mean(SAMPLING, setting, "deviation_milli", 1000)
        victim = view.end(setting, "victim_lying", "victim_places")
        rows.append(
            (
                attack,
                way,
                float(share),
                int(sybils[0]) if sybils else None,
                short(view.peak(setting)),
                short(view.end(setting)),
                short(isolated, 1),
                short(victim if attack == "eclipse" else None),
                short(deviation, 2),
            )
        )
    rows.sort(key=lambda row: (str(row[0]), float(row[2] or 0), WAYS.index(str(row[1])), int(row[3] or 0)))
    columns = ("attack", "sampler", "liars", "invented", "at most", "at the end", "isolated", "victim")
    return Grid(
        title="Liars' share of the views of honest nodes",
        columns=(*columns, "in-degree s.d."),
        rows=tuple(rows),
        note="Isolated: honest nodes that know liars alone. Brahms and Cyclon have no trust to go by.",
    )


def filters(view: View, origin: str) -> Grid:
    """Utility and attack for each epsilon."""
    rows: list[tuple[Cell, ...]] = []
    for epsilon in EPSILONS:
        row: list[Cell] = [epsilon]
        for hashes in HASHES:
            setting = f"{origin}|{hashes}|{epsilon:g}"
            measures = ("utility", "utility_two_sided", "likeness", "attack")
            row += [short(view.outcomes.ratio(FILTERS, setting, each)) for each in measures]
        rows.append(tuple(row))
    names = ("found", "found, two-sided", "likeness", "attack")
    return Grid(
        title=f"What filters find and tell: {origin}",
        columns=("epsilon", *(f"k={hashes} {name}" for hashes in HASHES for name in names)),
        rows=tuple(rows),
        note="Found: common topics with the twenty chosen by filters, over those with the twenty best. "
        "Attack: 0.5 is guessing; of private topics it is 0.5 for whoever does not know them.",
    )


def rings(view: View) -> Grid:
    """Hops, copies and reach of large rings."""
    rows: list[tuple[Cell, ...]] = []
    for setting in view.outcomes.settings(RINGS):
        nodes, fanout, failed = setting.split("|")
        reached = view.outcomes.mean(RINGS, setting, "reached") or 1.0
        hops, copies = (view.outcomes.mean(RINGS, setting, name) for name in ("hops", "copies"))
        rows.append(
            (
                int(nodes),
                int(fanout),
                float(failed),
                short(view.outcomes.ratio(RINGS, setting, "hit_ratio"), 5),
                short(None if hops is None else hops / reached, 2),
                short(view.outcomes.mean(RINGS, setting, "max_hops"), 0),
                short(None if copies is None else copies / reached, 3),
            )
        )
    rows.sort(key=lambda row: tuple(float(cell or 0) for cell in row[:3]))
    return Grid(
        title="Events over one ring",
        columns=("members", "fan-out", "failed", "reached", "mean hops", "most hops", "copies each"),
        rows=tuple(rows),
        note="Right after a failure: links to those who failed are known to be gone, nothing is repaired.",
    )


def living(view: View) -> Grid:
    """Whole overlays."""
    rows: list[tuple[Cell, ...]] = []
    for setting in view.outcomes.settings(LIVING):
        origin, _, name = setting.partition("|")
        ratios = (
            "hit_ratio",
            "hit_ratio_after_repair",
            "connected_topics",
            "connected_topics_least",
            "rings_right",
        )
        means = ("mean_degree", "mean_hops", "mean_delay_ms", "duplication", "join_rounds")
        rows.append(
            (
                origin,
                name,
                *(short(view.outcomes.ratio(LIVING, setting, each), 6) for each in ratios),
                *(short(view.outcomes.mean(LIVING, setting, each, 1000), 2) for each in means),
                short(view.outcomes.ratio(LIVING, setting, "liar_view_share_peak")),
                short(view.outcomes.ratio(LIVING, setting, "liar_view_share")),
            )
        )
    return Grid(
        title="Whole overlays",
        columns=(
            "interests",
            "circumstances",
            "hit ratio at once",
            "after repair",
            "topics connected",
            "at least",
            "rings right",
            "neighbours",
            "hops",
            "delay, ms",
            "copies each",
            "join, rounds",
            "liars at most",
            "liars at the end",
        ),
        rows=tuple(rows),
        note="Hit ratio at once: of those who were there, within ten seconds, by passing on alone.",
    )


def mending(view: View) -> Grid:
    """Failures, a partition, and newcomers."""
    rows: list[tuple[Cell, ...]] = []
    for setting in view.outcomes.settings(MENDING):
        kind, share = setting.split("|")
        ratios = ("hit_ratio_at_once", "hit_ratio_after_repair", "rings_right")
        rows.append(
            (
                kind,
                float(share),
                *(short(view.outcomes.ratio(MENDING, setting, each), 6) for each in ratios),
                short(view.outcomes.mean(MENDING, setting, "repaired_rounds"), 1),
                short(view.outcomes.mean(MENDING, setting, "whole_after_ms", 1000), 1),
                *(
                    short(view.outcomes.mean(MENDING, setting, f"join_ms_{size}", 1000), 1)
                    for size in ("small", "middle", "large")
                ),
            )
        )
    columns = ("what", "share", "hit ratio at once", "after repair", "rings right", "repaired, rounds")
    return Grid(
        title="Failures, a partition, newcomers",
        columns=(*columns, "whole after, s", "join small, s", "join middle, s", "join large, s"),
        rows=tuple(rows),
        note="A small topic has fewer than 10 members, a large one 40 or more; newcomers know two addresses.",
    )


def choosing(view: View) -> Grid:
    """Which overlay to choose."""
    rows: list[tuple[Cell, ...]] = []
    for title, measure, by, digits in (
        ("delay of first copies, ms", "delay_ms", 1.0, 0),
        ("hops", "hops", 1000.0, 2),
        ("copies for each event", "copies", 1000.0, 2),
        ("neighbours of a node", "degree", 1000.0, 1),
        ("bytes of a node until it has joined", "joining_bytes", 1.0, 0),
        ("bytes of a node in a silent hour", "hourly_bytes", 1.0, 0),
        ("hit ratio", "hit_ratio", 1e6, 6),
        ("hit ratio right after 10 % failed", "hit_ratio_at_once", 1e6, 6),
        ("rounds of 10 s until all is mended", "repaired_rounds", 1.0, 1),
    ):
        found = [view.outcomes.mean(CHOOSING, overlay, measure, by) for overlay in (TRACKER, RING)]
        rows.append((title, *(short(value, digits) for value in found)))
    known: tuple[tuple[Cell, ...], ...] = (
        (
            "who learns who is in a topic",
            "the tracker, and all of the topic",
            "members, as far as they are beside",
        ),
        ("what must stay up", "a tracker, or its standby", "nothing"),
    )
    return Grid(title="Tracker or ring", columns=("", "tracker", "ring"), rows=(*rows, *known), note=_ADVICE)
