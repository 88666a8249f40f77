from __future__ import annotations

from tests.cli.village import Tea


def test_what_was_said_is_taken_back(tea: Tea) -> None:
    event = tea.ada.json("room", "send", "tea", "oops")["ids"][0]
    said = tea.ada.ok("room", "redact", "tea", event[:20], "--reason", "typo")
    assert said.startswith(f"taken back: {event}")
    assert f"took back {event[:12]}…: typo" in tea.ada.ok("room", "history", "tea")
    assert "checksum" in tea.ada.fails(2, "room", "redact", "tea", event[:-4] + "aaaa")
