"""The page has all its parts, and says what was drawn instead of found."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.overlay.report import sections
from linnet.lab.studies.overlay.view import View


def test_sections(view: View) -> None:
    found = list(sections(view))
    assert [section.title for section in found][:2] == [
        "Peer sampling under attack",
        "Filters: what they find and what they tell",
    ]
    assert len(found) == 8
    assert "phones" in found[0].text[0]
    assert len(next(sections(replace(view, missing=()))).text) == 1
