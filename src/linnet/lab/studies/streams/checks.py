"""What must hold of a study of streams."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Check
from linnet.lab.studies.streams.figures import printed_sizes
from linnet.lab.studies.streams.metrics import Key
from linnet.lab.studies.streams.parameters import AT_ONCE, AWARE, COUNTER, HELD, LIVE, NAIVE, PLAIN, THROTTLED
from linnet.lab.studies.streams.view import View

WITHIN = 6.0
"""Percent that means may differ from published ones."""

LARGE_ENOUGH = 256
"""Nodes from which on near links must show."""

_FLOODED = (COUNTER, AWARE, NAIVE, AT_ONCE, PLAIN)
"""Runs whose overlay stays as it is while events are published, and holds nothing back."""


def checks(view: View) -> tuple[Check, ...]:
    """All checks that the runs allow."""
    return (
        _complete(view),
        _on_shortest_paths(view),
        *_regular(view),
        *_published(view),
        *_nearer(view),
    )


def _runs(view: View, *modes: str) -> Iterator[tuple[Key, int, dict[str, int]]]:
    for key, runs in view.outcomes.totals.items():
        if key[0] in modes:
            for repeat, run in enumerate(runs):
                yield key, repeat, dict(run)


def _complete(view: View) -> Check:
    modes = (*_FLOODED, HELD)
    short = [
        f"{key[0]}, {key[1]} nodes, degree {key[2]}, repeat {repeat}: {run['reached']} of {run['expected']}"
        for key, repeat, run in _runs(view, *modes)
        if run["reached"] != run["expected"]
    ]
    runs = sum(1 for _ in _runs(view, *modes))
    return Check(
        id="complete",
        says="every message reached every other node",
        ok=not short,
        detail=f"{len(short)} of {runs} runs fall short, first {short[0]}" if short else f"{runs} runs",
    )


def _on_shortest_paths(view: View) -> Check:
    """Model and simulation: the clock of a run has a resolution of a quarter of a microsecond."""
    wrong = [
        f"{key[0]}, {key[1]} nodes, repeat {repeat}: {run['delay']} and {run['source_path_delay']} us"
        for key, repeat, run in _runs(view, *_FLOODED)
        if run["receipts"] != run["source_paths"]
        or abs(run["delay"] - run["source_path_delay"]) > run["receipts"]
    ]
    return Check(
        id="shortest_paths",
        says="floods took the shortest paths from their sources, to a microsecond",
        ok=not wrong,
        detail=f"first difference: {wrong[0]}" if wrong else "",
    )


def _regular(view: View) -> Iterator[Check]:
    bad = [
        f"{key[1]} nodes, repeat {repeat}"
        for key, repeat, run in _runs(view, COUNTER)
        if not run["regular"] or run["one_sided"]
    ]
    if COUNTER in view.modes:
        yield Check(
            id="regular",
            says="with counters every overlay is regular, also if all join at once",
            ok=not bad,
            detail=f"not so: {bad[0]}" if bad else "",
        )


def _published(view: View) -> Iterator[Check]:
    """Repeats scatter by up to 12 ms, so that fewer than ten say little: then nothing is asked."""
    if not view.is_whole():
        return
    sizes = printed_sizes(view)
    for name, says, values in (
        (
            "estimates",
            "published WebRTC estimates",
            {
                size: (view.delay(COUNTER, size), view.published.number(f"estimate.counter.{size}"))
                for size in sizes
            },
        ),
        (
            "rdp",
            "published RDP of WebRTC",
            {size: (view.rdp(COUNTER, size), view.published.number(f"rdp.counter.{size}")) for size in sizes},
        ),
    ):
        off = {size: (found / printed - 1) * 100 for size, (found, printed) in values.items()}
        yield Check(
            id=f"counter.{name}",
            says=f"means with counters are within {WITHIN:g} % of the {says}",
            ok=all(abs(percent) <= WITHIN for percent in off.values()),
            detail=", ".join(f"{size}: {percent:+.1f} %" for size, percent in off.items()),
        )


def _nearer(view: View) -> Iterator[Check]:
    for mode in (NAIVE, AWARE):
        sizes = [size for size in view.sizes(mode) if size >= LARGE_ENOUGH and size in view.sizes(COUNTER)]
        if not sizes:
            continue
        pairs = {size: (view.delay(mode, size), view.delay(COUNTER, size)) for size in sizes}
        yield Check(
            id=f"{mode}.below",
            says=f"{mode} is faster than counters from {LARGE_ENOUGH} nodes on",
            ok=all(found < other for found, other in pairs.values()),
            detail=", ".join(
                f"{size}: {found:.0f} and {other:.0f} ms" for size, (found, other) in pairs.items()
            ),
        )


def live_losses(view: View) -> dict[int, float]:
    """Completeness while the naive tracker goes on, by size: links that it closes take messages along."""
    return {
        size: view.outcomes.ratio(view.key(LIVE, size), "reached", "expected") for size in view.sizes(LIVE)
    }


def is_throttled(mode: str, size: int) -> bool:
    """Whether joins were throttled."""
    return mode == NAIVE and size > THROTTLED
