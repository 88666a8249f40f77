"""Attacks that `linnet sim` runs by their names, beside the same run without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import Options
from linnet.cli.sim.runner import show_outcome, simulation

if TYPE_CHECKING:
    from linnet.sim.attacks.figures import AttackFigures

ShareOption = Annotated[
    float | None,
    typer.Option(
        "--share",
        min=0.0,
        max=1.0,
        help="With --attack: the share of attackers. Unset: the first share that the study of attacks has.",
    ),
]


@dataclass(frozen=True)
class AttackOptions(Options):
    """An attack, and how many take part."""

    attack: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Measure this attack beside the same run without it; a wrong name lists them. The other "
            "options but --seed do not count then.",
        ),
    ] = None
    share: ShareOption = None


def show_attack(way: str, name: str, share: float | None, seed: int, as_json: bool) -> None:
    """Run an attack by its name, and print its figures."""
    with simulation():
        from linnet.sim.attacks.catalogue import attacks_of

        known = {each.name: each for each in attacks_of(way)}
        if name not in known:
            raise Failure(f"--attack {name}: one of {', '.join(known)}", ExitCode.USAGE)
        attack = known[name]
        wanted = attack.shares[0] if share is None else share
        if wanted >= 1.0 and 1.0 not in attack.shares:
            raise Failure(f"--share {wanted:g}: {name} needs somebody who is honest", ExitCode.USAGE)
        figures = attack.run(wanted, seed)
    show_outcome(figures, rows_of(figures), as_json, True, ())


def rows_of(figures: AttackFigures) -> list[tuple[str, object]]:
    """Return the figures of an attack in words."""
    return [
        ("attack", figures.attack),
        ("share of attackers", figures.share),
        ("deliveries due", figures.honest_due),
        ("of these in time", figures.delivered),
        ("the same without the attack", figures.delivered_without),
        ("slowest delivery, s", figures.worst_seconds),
        ("first told after, s", figures.told_after_seconds),
        ("bytes of the attackers", figures.attacker_bytes),
        ("bytes of the honest nodes", figures.honest_bytes),
    ]
