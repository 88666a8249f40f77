"""The channel of a place on one core: its text form, and the test of who may see what. Processor time."""

from __future__ import annotations

from bench import place_members, place_texts
from bench.results import Measure, Plan

SECTION = "channel"


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    return [*place_texts.measure(plan, SECTION), *place_members.measure(plan, SECTION)]
