from __future__ import annotations

from tests.cli.name.neighbours import MUSIC, Neighbours


def test_a_label_is_taken_back_and_stays_listed_as_removed(neighbours: Neighbours) -> None:
    carol = neighbours.carol
    carol.ok("name", "publish", "old", "--place", MUSIC)
    assert carol.ok("name", "remove", "old").startswith("removed old; who asks is told so until ")
    [name] = [each for each in carol.json("name", "list")["names"] if each["label"] == "old"]
    assert (name["removed"], name["place"], name["renew"]) == (True, None, False)
    assert "was removed already" in carol.fails(1, "name", "remove", "old")
    assert "the password is empty" in carol.fails(
        2, "name", "remove", "old", "--password-file", "-", given=""
    )
