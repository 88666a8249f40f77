"""What is run: each case is a scenario, a variant, a network, and a seed."""

from __future__ import annotations

import hashlib

from msgspec import Struct

from linnet.content.config import ContentConfig
from linnet.lab.studies.content.parameters import ContentParameters
from linnet.sim.content.scenario import Course, Variant

SCENARIOS = tuple(course.value for course in Course)
ROUNDS = ("base-unreliable", "redirect-unreliable", "base-reliable", "redirect-reliable")
"""Variants that can be run in several rounds."""
REPLICATION, LONG = "replication", "long-run"
USUAL = ContentConfig().backups
PUBLISHED_VARIANTS = ("base-unreliable", "redirect-unreliable", "base-reliable", "redirect-reliable", "fast")
"""In the order of the published tables."""


class Case(Struct, frozen=True):
    """One run."""

    scenario: str
    variant: str
    nodes: int
    f: int
    """Backups of a node."""
    repeat: int
    seed: int


def variants() -> tuple[str, ...]:
    """What the simulation can run today, in the order of the published tables."""
    known = [variant.value for variant in Variant]
    return tuple(sorted(known, key=lambda name: _place(name, known)))


def absent_variants() -> tuple[str, ...]:
    """Published ones that the simulation cannot run yet."""
    return tuple(name for name in PUBLISHED_VARIANTS if name not in variants())


def _place(name: str, known: list[str]) -> tuple[int, int]:
    place = PUBLISHED_VARIANTS.index(name) if name in PUBLISHED_VARIANTS else len(PUBLISHED_VARIANTS)
    return place, known.index(name)


def seed_of(seed: int, name: str, repeat: int) -> int:
    """A seed of its own for each repeat; variants have the same, so that they are compared on one network."""
    digest = hashlib.sha256(f"linnet/lab/content/{seed}/{name}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def scenario_cases(parameters: ContentParameters) -> list[Case]:
    """Every scenario with every variant in every network."""
    return [
        Case(scenario, variant, nodes, USUAL, repeat, seed_of(parameters.seed, f"{scenario}/{nodes}", repeat))
        for nodes in parameters.nodes
        for scenario in SCENARIOS
        for variant in variants()
        for repeat in range(parameters.repeats)
    ]


def staged_variant() -> str:
    """What replication is run with: as published if it can be."""
    return next(name for name in ("redirect-reliable", "base-reliable") if name in ROUNDS)


def staged_cases(parameters: ContentParameters) -> list[Case]:
    """Four stages with each number of backups, on one network; and a long run."""
    cases = []
    for repeat in range(parameters.repeats):
        if parameters.staged:
            seed = seed_of(parameters.seed, REPLICATION, repeat)
            cases += [
                Case(REPLICATION, staged_variant(), parameters.staged, f, repeat, seed)
                for f in parameters.backups
            ]
        if parameters.long:
            seed = seed_of(parameters.seed, LONG, repeat)
            cases += [
                Case(LONG, variant, parameters.long, USUAL, repeat, seed)
                for variant in variants()
                if variant in ROUNDS
            ]
    return cases
