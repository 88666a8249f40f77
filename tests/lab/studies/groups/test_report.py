"""The sections of the page."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.groups.report import sections
from linnet.lab.studies.groups.targets import targets
from linnet.lab.studies.groups.view import View


def test_misses_come_first_with_their_cause(view: View) -> None:
    found = targets(view)
    first, *others = sections(view, [replace(found[0], measured=1e9, detail="too much padding")])
    assert first.title == "Targets"
    assert first.text[0] == "0 of 1 limits are kept."
    assert "too much padding" in first.text[1]
    assert [section.title for section in others] == [
        "Bytes", "Processor time", "Growth", "Acknowledgements", "Keys",
    ]  # fmt: skip
    assert "load average was" in others[1].text[0]
