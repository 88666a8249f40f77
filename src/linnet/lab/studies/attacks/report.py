"""What the study of attacks says: one table, its figures, and what must hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from linnet.lab.report.parts import Cell, Check, Figure, Grid, Section
from linnet.lab.report.published import Published
from linnet.lab.studies.attacks.metrics import Outcome
from linnet.lab.studies.attacks.run import TROUBLE
from linnet.sim.attacks.catalogue import ATTACKS, NamedAttack

_JOINED = {"": "", "before": ", joined first", "after": ", joined last", "among": ", joined among them"}
COLUMNS = (
    "attack",
    "attackers",
    "arrive without, %",
    "arrive, %",
    "worst run, %",
    "slowest, s",
    "noticed in runs",
    "after, s",
    "they send, kB",
    "we send, kB",
    "published",
)
_KILO, _MICRO = 1000.0, 1_000_000.0


def attack_of(outcome: Outcome) -> NamedAttack:
    """Return the attack that an outcome is of."""
    key = (outcome.way, outcome.attack, outcome.joins)
    return next(each for each in ATTACKS if (each.way, each.name, each.order) == key)


def attacks_in(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes of attacks, in the order of the catalogue."""
    places = {(each.way, each.name, each.order): place for place, each in enumerate(ATTACKS)}
    found = [each for each in outcomes if each.way != TROUBLE]
    return sorted(found, key=lambda each: (places[each.way, each.attack, each.joins], each.share_ppm))


def troubles_in(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes of honest nodes in trouble."""
    return sorted((each for each in outcomes if each.way == TROUBLE), key=lambda each: each.attack)


def name_of(outcome: Outcome) -> str:
    """Return the attack of an outcome in words."""
    return attack_of(outcome).says + _JOINED[outcome.joins]


def percent(share: float) -> float:
    """Return a share in percent, to one place."""
    return round(100.0 * share, 1)


def attacks_grid(outcomes: Sequence[Outcome], published: Published) -> Grid:
    """Return the table of all attacks."""
    rows: list[tuple[Cell, ...]] = []
    for each in attacks_in(outcomes):
        low, high = each.interval
        id = f"arrived.{each.attack}"
        is_fork = not each.without
        rows.append(
            (
                f"`{each.attack}`: {name_of(each)}",
                f"{percent(each.share):g} %",
                None if is_fork else percent(each.without or 0.0),
                f"{percent(each.mean):g} ({percent(low):g} to {percent(high):g})",
                percent(each.least),
                round(each.worst_us / _MICRO, 1),
                f"{each.noticed} of {each.runs}",
                None if each.told_us is None else round(each.told_us / _MICRO, 1),
                round(each.attacker_bytes / _KILO),
                round(each.honest_bytes / _KILO),
                str(published[id].value) if id in published else None,
            )
        )
    return Grid(
        title="Attacks",
        columns=COLUMNS,
        rows=tuple(rows),
        note="Shares of deliveries that are due between honest nodes and come within 30 s (to guests of a "
        "place: 120 s; to members of a room: at all): the mean of all runs with its 95 % interval, and the "
        "worst run. Of a fork, what is due is its proof. `Noticed` counts runs in which an honest node was "
        "told; `after` is the mean time until the first was.",
    )


def troubles_grid(outcomes: Sequence[Outcome]) -> Grid:
    """Return the table of honest nodes in trouble."""
    rows = tuple(
        (each.attack, f"{percent(each.share):g} %", each.runs, percent(each.mean), each.blamed)
        for each in troubles_in(outcomes)
    )
    return Grid(
        title="Honest nodes in trouble",
        columns=("trouble", "of the nodes", "runs", "arrive, %", "honest nodes blamed"),
        rows=rows,
        note="Slow nodes send 1 to 5 s late, sleepy ones stand still for 10 to 60 s at times, lossy ones "
        "lose 5 to 20 % of what they send. Nobody attacks, so nobody may be blamed.",
    )


def sections(outcomes: Sequence[Outcome], published: Published) -> Iterator[Section]:
    """Yield all parts of the page."""
    yield Section(title="Attacks", grids=(attacks_grid(outcomes, published),))
    if troubles_in(outcomes):
        yield Section(title="Honest nodes in trouble", grids=(troubles_grid(outcomes),))


def figures(outcomes: Sequence[Outcome], published: Published) -> Iterator[Figure]:
    """Yield the share of deliveries of each attack, and the time until somebody noticed."""
    for each in attacks_in(outcomes):
        place = ".".join(part for part in (each.attack, each.joins, f"{percent(each.share):g}") if part)
        title = f"due deliveries that come, {percent(each.share):g} % attackers: {name_of(each)}"
        id = f"arrived.{each.attack}"
        low, high = each.interval
        note = f"95 % interval {percent(low):g} to {percent(high):g}, worst run {percent(each.least):g}."
        measured = Figure(
            id=f"arrived.{place}", title=title, unit="%", measured=percent(each.mean), note=note
        )
        if id in published:
            printed = published[id]
            beside = f"{note} {printed.note}"
            measured = replace(measured, published=printed.value, source=printed.source, note=beside)
        yield measured
        told = None if each.told_us is None else round(each.told_us / _MICRO, 3)
        yield Figure(
            id=f"told.{place}",
            title=f"until an honest node is told, {percent(each.share):g} % attackers: {name_of(each)}",
            unit="s",
            measured=told,
            note=f"In {each.noticed} of {each.runs} runs.",
        )


def checks(outcomes: Sequence[Outcome]) -> Iterator[Check]:
    """Yield what must hold: bounds of attacks, calm runs, and that no honest node is blamed."""
    for each in attacks_in(outcomes):
        place = ".".join(part for part in (each.attack, each.joins, f"{percent(each.share):g}") if part)
        if each.without:
            yield Check(
                id=f"calm.{place}",
                says=f"{name_of(each)}: without them every due delivery comes",
                ok=each.without == 1.0,
                detail=f"{percent(each.without):g} %",
            )
        if each.share <= attack_of(each).holds_to + 1e-6:
            yield Check(
                id=f"holds.{place}",
                says=f"{name_of(each)}: every due delivery comes all the same",
                ok=each.least == 1.0,
                detail=f"worst of {each.runs} runs {percent(each.least):g} %",
            )
        if each.way == "content":
            yield Check(
                id=f"told.{place}",
                says=f"{name_of(each)}: where something is missing, its publisher is told",
                ok=each.unnoticed_losses == 0,
                detail=f"{each.unnoticed_losses} of {each.runs} runs lost something unnoticed",
            )
    for each in troubles_in(outcomes):
        yield Check(
            id=f"blamed.{each.attack}",
            says=f"no honest node is blamed because nodes are {each.attack}",
            ok=each.blamed == 0,
            detail=f"{each.blamed} in {each.runs} runs",
        )
