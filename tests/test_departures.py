"""Where we do otherwise than our sources, the decision says so, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DECISIONS = Path(__file__).parent.parent / "docs" / "adr"
REASON_CHARS = 60
"""Fewer characters than this behind what is done are no reason."""

DEPARTURES = {
    "0017-overlays-without-trackers.md": (
        "One more overlay behind the same interface",
        "Pulls with bounded self-introduction",
        "A node releases one filter per epoch",
        "Searches are the way in",
        "Intersections are those of decision 0015",
        "Neighbours agree",
        "A formed ring gossips once in six rounds",
        "The secret of a room's topic is its id",
        "A local network gets no filter",
    ),
}
"""What is otherwise in the code: each is a point of the decision."""


def points_of(decision: str) -> dict[str, str]:
    """The points of a decision, and what stands behind each."""
    text = (DECISIONS / decision).read_text()
    section = text.split("## Decision\n", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"^- \*\*(.+?)\*\*(.*?)(?=^- \*\*|\Z)", section, re.MULTILINE | re.DOTALL)
    return {" ".join(title.split()).rstrip("."): " ".join(rest.split()) for title, rest in found}


@pytest.mark.parametrize("decision", DEPARTURES)
def test_every_departure_from_the_sources_is_a_point_of_its_decision_with_a_reason(decision: str) -> None:
    points = points_of(decision)
    for named in DEPARTURES[decision]:
        assert named in points, f"{decision} does not say: {named}"
    for title in points:
        assert len(title + points[title]) >= REASON_CHARS, f"{decision} gives no reason for: {title}"


@pytest.mark.parametrize("decision", DEPARTURES)
def test_what_was_left_out_and_what_would_change_our_mind_is_told(decision: str) -> None:
    text = (DECISIONS / decision).read_text()
    for heading in ("## Not built", "## What would change our mind"):
        section = text.split(f"{heading}\n", 1)[1].split("\n## ", 1)[0]
        assert len(section.strip()) >= REASON_CHARS, heading
