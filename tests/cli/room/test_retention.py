from __future__ import annotations

from tests.cli.village import Tea


def test_shown_and_decided(tea: Tea) -> None:
    tea.ada.ok("room", "create", "kept")
    assert "nothing is decided" in tea.ada.ok("room", "retention", "kept")
    assert tea.ada.ok("room", "retention", "kept", "2h").startswith("relays keep events for 2h 0m")
    assert tea.ada.json("room", "retention", "kept")["seconds"] == 7200
    tea.ada.ok("room", "retention", "kept", "forever")
    assert tea.ada.ok("room", "retention", "kept") == "relays keep events until they are full\n"
    assert "is no length of time" in tea.ada.fails(2, "room", "retention", "kept", "long")
