from __future__ import annotations

from tests.cli.village import Tea

from linnet.identity.text import Sort, to_text


def test_someone_who_never_came(tea: Tea) -> None:
    stranger = to_text(Sort.PERSON, b"s" * 32)
    assert tea.ada.ok("room", "ban", "tea", stranger).startswith(f"banned {stranger}")
    members = {each["person"]: each for each in tea.ada.json("room", "members", "tea")["members"]}
    assert members[stranger]["membership"] == "ban"
    assert len(tea.ada.json("room", "unban", "tea", stranger[:12])["ids"]) == 1
