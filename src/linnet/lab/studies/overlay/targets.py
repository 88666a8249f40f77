"""What must hold of a study of overlays without trackers."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Check
from linnet.lab.studies.overlay import bounds
from linnet.lab.studies.overlay.attacks import TRUSTING
from linnet.lab.studies.overlay.mending import FAILURE, PARTITION
from linnet.lab.studies.overlay.parameters import FAILURES, SHARES
from linnet.lab.studies.overlay.view import View
from linnet.lab.studies.overlay.workload import ALL_LIARS, CALM, LIVING, MENDING, RINGS

FAIR = 1.5
"""Times their fair share that liars may have of views in the end."""
LARGE, FANOUT, HOPS = 10_000, 3, 8.5
REPAIRED = 0.9999


def checks(view: View) -> tuple[Check, ...]:
    """All checks that the runs allow."""
    return (
        *_sampling(view),
        *_rings(view),
        *_living(view),
        *_mending(view),
        _never(view),
        *_degrees(view),
        *bounds.checks(view.outcomes),
    )


def _sampling(view: View) -> Iterator[Check]:
    for share in SHARES:
        setting = f"{TRUSTING}|hub|{share:g}"
        end, isolated = view.end(setting), view.outcomes.mean("sampling", setting, "isolated")
        if end is not None:
            peak = view.peak(setting) or 0.0
            yield Check(
                id=f"liars.{share:g}",
                says=f"with {share:.0%} liars their share of views is at most {FAIR} times that in the end",
                ok=end <= FAIR * share and not isolated,
                detail=f"{end:.3f} at the end, {peak:.3f} at most, {isolated:g} isolated",
            )
    setting = f"{TRUSTING}|eclipse|{ALL_LIARS:g}"
    victim = view.peak(setting, "victim_lying", "victim_places")
    if victim is not None:
        yield Check(
            id="eclipse",
            says="whom all liars turn to never knows liars alone",
            ok=victim < 1.0,
            detail=f"{victim:.2f} of its view at most",
        )


def _rings(view: View) -> Iterator[Check]:
    found = view.hops(LARGE, FANOUT)
    if found is not None:
        yield Check(
            id="hops",
            says=f"mean hops among {LARGE} members with fan-out {FANOUT} are at most {HOPS}",
            ok=found <= HOPS,
            detail=f"{found:.2f}",
        )
    whole = [name for name in view.outcomes.settings(RINGS) if name.endswith("|0")]
    short = [name for name in whole if view.outcomes.ratio(RINGS, name, "hit_ratio") != 1.0]
    yield Check(
        id="rings.whole",
        says="a whole ring reaches all its members",
        ok=not short,
        detail=short[0] if short else f"{len(whole)} rings",
    )


def _living(view: View) -> Iterator[Check]:
    for setting in view.outcomes.settings(LIVING):
        origin, _, name = setting.partition("|")
        within = view.outcomes.ratio(LIVING, setting, "hit_ratio")
        after = view.outcomes.ratio(LIVING, setting, "hit_ratio_after_repair")
        if within is None or after is None:
            continue
        calm = name == CALM
        yield Check(
            id=f"living.{origin}.{name.replace(' ', '_')}",
            says=f"{origin}, {name}: hit ratio "
            + ("1 without any repair" if calm else f"{REPAIRED} or more after repair"),
            ok=within == 1.0 if calm else after >= REPAIRED,
            detail=f"{within:.5f} at once, {after:.6f} after repair",
        )


def _mending(view: View) -> Iterator[Check]:
    settings = [f"{FAILURE}|{share:g}" for share in FAILURES] + [f"{PARTITION}|0"]
    for setting in settings:
        after = view.outcomes.ratio(MENDING, setting, "hit_ratio_after_repair")
        if after is not None:
            yield Check(
                id=f"mending.{setting.replace('|', '.')}",
                says=f"after {setting.replace('|', ' of ').removesuffix(' of 0')} all get everything",
                ok=after >= REPAIRED,
                detail=f"{after:.6f}",
            )


def _never(view: View) -> Check:
    found = {name: view.outcomes.total(name) for name in ("causal_violations", "repeated", "noise")}
    return Check(
        id="causal",
        says="nothing comes before its causes, twice, or to a node that is not in its topic",
        ok=not any(found.values()),
        detail=", ".join(f"{name.replace('_', ' ')} {count}" for name, count in found.items()),
    )


def _degrees(view: View) -> Iterator[Check]:
    power = view.degree_power("id")
    if power is not None:
        yield Check(
            id="degrees",
            says="neighbours grow slower than subscriptions",
            ok=power < 0.9,
            detail=f"as their power {power:.2f} by ids, {view.degree_power('hash') or 0.0:.2f} by hashes",
        )
