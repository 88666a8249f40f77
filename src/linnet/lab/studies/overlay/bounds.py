"""Attacks on nodes and rings, each with a number and its bound (`linnet.sim.attacks.overlay`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.report.parts import Check, Figure, Grid
from linnet.lab.studies.overlay.metrics import PPM, Outcomes
from linnet.lab.studies.overlay.parameters import OverlayParameters
from linnet.sim.attacks.overlay import ATTACKS, SMALL, AttackRow, AttackSize

BOUNDS = "bounds"
_VALUE, _BOUND, _IS_MOST = range(3)
"""Bins of a measure."""
_BY_NAME = {attack.__name__: attack for attack in ATTACKS}


class BoundsPlan(Struct, frozen=True):
    """One attack, in networks of this size."""

    attack: str
    size: AttackSize


def bounds_plans(parameters: OverlayParameters) -> list[BoundsPlan]:
    """All of them; in small networks where the attacks on peer sampling are in small ones too."""
    size = AttackSize() if parameters.attack_nodes >= AttackSize().nodes else SMALL
    return [BoundsPlan(name, replace(size, seed=parameters.seed)) for name in _BY_NAME]


def measure_bounds(plan: BoundsPlan) -> Mapping[str, Mapping[int, int]]:
    """Each number in millionths, with its bound."""
    attack = _BY_NAME.get(plan.attack)
    if attack is None:
        raise LabError(f"no attack is called {plan.attack!r}")
    return {
        f"{row.attack}|{row.measure}": {
            _VALUE: round(PPM * row.value),
            _BOUND: round(PPM * row.bound),
            _IS_MOST: int(row.is_most),
        }
        for row in attack(plan.size)
    }


def attack_rows(outcomes: Outcomes) -> Iterator[AttackRow]:
    """What came of them."""
    for setting in outcomes.settings(BOUNDS):
        for run in outcomes.runs[BOUNDS, setting]:
            for name in dict.fromkeys(measure for measure, _ in run):
                value, bound = run[name, _VALUE] / PPM, run[name, _BOUND] / PPM
                attack, _, measure = name.partition("|")
                yield AttackRow(attack, measure, value, bound, bool(run[name, _IS_MOST]))


def figures(outcomes: Outcomes) -> Iterator[Figure]:
    """A figure for each number."""
    for row in attack_rows(outcomes):
        words = f"{row.attack} {row.measure}".lower()
        name = "".join(letter if letter.isalnum() else "_" for letter in words)
        title = f"{row.attack}: {row.measure}"
        yield Figure(id=f"bounds.{name}", title=title, unit="", measured=round(row.value, 4))


def checks(outcomes: Outcomes) -> Iterator[Check]:
    """That each keeps its bound."""
    found: dict[str, list[AttackRow]] = {}
    for row in attack_rows(outcomes):
        found.setdefault(row.attack, []).append(row)
    for attack, rows in found.items():
        broken = [row for row in rows if not row.holds]
        yield Check(
            id=f"bounds.{attack.replace(' ', '_')}",
            says=f"{attack}: every number is within its bound",
            ok=not broken,
            detail="; ".join(f"{row.measure}: {row.value:g}" for row in broken) or f"{len(rows)} numbers",
        )


def grid(outcomes: Outcomes) -> Grid:
    """The table of all attacks."""
    rows = [
        (
            row.attack,
            row.measure,
            round(row.value, 4),
            f"{'at most' if row.is_most else 'at least'} {row.bound:g}",
        )
        for row in attack_rows(outcomes)
    ]
    return Grid(
        title="Attacks on nodes and rings",
        columns=("attack", "measure", "measured", "must be"),
        rows=tuple(sorted(rows)),
        note="The same code is attacked over real sockets in tests/node/test_ring_attacks.py.",
    )
