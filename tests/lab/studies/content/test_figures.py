"""Figures: the published ones beside ours at 60 nodes, ours alone elsewhere."""

from __future__ import annotations

from linnet.lab.studies.content.figures import OF_A_PROCESS, SIMULATED, figures
from linnet.lab.studies.content.view import View


def test_figures_stand_beside_what_is_published(view: View) -> None:
    found = {figure.id: figure for figure in figures(view)}
    cell = found["duplicated.normal.base-unreliable"]
    assert (cell.measured, cell.published, cell.source) == (0.89, 16.97, "Agostinho 2021, table 5.1")
    assert "19 of 112" in cell.note
    memory = found["memory.event-burst.redirect-reliable"]
    assert (memory.measured, memory.published) == (3.0, 268)
    assert "can be compared" in memory.note
    latency = found["latency.mean.fault.base-reliable"]
    assert (latency.measured, latency.published) == (70.0, 210)
    assert SIMULATED in latency.note
    assert SIMULATED == "simulated: no processor in it"


def test_stages_stand_beside_what_is_published(view: View) -> None:
    found = {figure.id: figure for figure in figures(view)}
    latency = found["stages.latency.2.3"]
    assert (latency.measured, latency.published, latency.unit) == (70.0, 330, "ms")
    assert "here base-reliable" in latency.note
    assert found["stages.subscribing.5.4"].measured == 50.0
    processor, memory = found["stages.processor.1.4"], found["stages.memory.1.2"]
    assert (processor.measured, processor.published) == (0.16, 21.8)
    assert (memory.measured, memory.published) == (6.0, 167)
    assert found["long-run.filters.base-reliable.2"].measured == 25.0


def test_everything_published_is_used(view: View) -> None:
    list(figures(view))
    assert view.published.unused() == []


def test_what_must_be_known_to_compare_is_said_beside_each(view: View) -> None:
    words = dict.fromkeys(("latency", "subscribing"), f"Ours is {SIMULATED}.")
    words |= dict.fromkeys(("processor", "memory"), OF_A_PROCESS)
    compared = [
        (figure.id.removeprefix("stages.").partition(".")[0], figure)
        for figure in figures(view)
        if figure.published is not None
    ]
    assert {kind for kind, _ in compared} == {*words, "duplicated", "reliability"}
    assert [figure.id for kind, figure in compared if words.get(kind, "") not in figure.note] == []


def test_other_networks_have_figures_of_their_own(view: View) -> None:
    found = {figure.id: figure for figure in figures(view)}
    assert found["duplicated.normal.base-unreliable.250"].published is None
    assert found["reliability.normal.fast.250"].measured == 100.0
    assert len(found) == len(list(figures(view)))
