"""Figures, beside what is published."""

from __future__ import annotations

from linnet.lab.studies.groups.figures import figures
from linnet.lab.studies.groups.view import View


def test_every_figure_has_a_name_of_its_own_and_published_ones_their_source(view: View) -> None:
    found = {each.id: each for each in figures(view)}
    assert len(found) == len(list(figures(view)))
    update = found["bytes.update.8"]
    assert (update.measured, update.published, update.unit) == (2232, 2389, "bytes")
    assert "Weidner et al. 2021" in update.source
    assert found["wire.update.8"].published is None
    assert found["cpu.update.8.sender"].published == 2.388
    assert "Without making it" in found["cpu.update.8.sender"].note
    assert "cpu.add.8.newcomer" in found
    assert found["overhead.message"].measured == 77
    one, many = found["batch.single.wire_bytes"].measured, found["batch.multi.wire_bytes"].measured
    assert isinstance(one, float)
    assert isinstance(many, float)
    assert many < one
    assert found["target.T5.overhead"].note.startswith("at most 126: reached")


def test_whatever_is_published_is_asked_for_at_its_size(view: View) -> None:
    list(figures(view))
    left = view.published.unused()
    assert not [id for id in left if ".8" in id]
    assert "overhead.message" not in left
