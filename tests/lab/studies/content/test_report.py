"""The page says what is not in the study."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.content.report import sections
from linnet.lab.studies.content.view import View


def test_what_is_absent_is_said_once(view: View) -> None:
    said = [text for section in sections(view) for text in section.text]
    assert [text for text in said if "cannot run yet" in text and "fast" in text] == said[:1]
    whole = [text for section in sections(replace(view, absent=())) for text in section.text]
    assert not any("cannot run yet" in text for text in whole)


def test_without_a_network_of_the_published_size_nothing_stands_beside(view: View) -> None:
    large = {key: counts for key, counts in view.counts.items() if key[2] == 250}
    found = list(sections(replace(view, counts=large)))
    assert [section.title for section in found] == ["Networks"]
    assert [section.title for section in sections(view)][2:] == ["Backups and stages", "A long run"]
    assert "cannot run yet" in found[0].text[0]
