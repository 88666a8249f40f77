from __future__ import annotations

import json
from pathlib import Path

from tests.cli.place.parlour import Parlour


def test_a_guest_hears_what_the_host_announces(parlour: Parlour) -> None:
    said = parlour.ada.json(
        "place", "announce", "tea", "The kettle is on", "--set", "_topic=cake", "--var", "_volume=3"
    )
    heard = parlour.bea.json("place", "watch", "tea", "--from", str(said["message"]), "--count", "1")
    assert (heard["method"], heard["text"]) == ("_message", "The kettle is on")
    assert [(each["name"], each["text"]) for each in heard["variables"]] == [
        ("_topic", "cake"),
        ("_volume", "3"),
    ]
    assert parlour.ada.ok("place", "announce", parlour.place[:14], "x").startswith("message ")
    assert parlour.ada.json("place", "announce", "tea", "-", given=b"\xff\x00")["size"] == 2


def test_a_file_is_sent_saved_and_gone_on_with(parlour: Parlour, tmp_path: Path) -> None:
    file = tmp_path / "film.bin"
    file.write_bytes(bytes(range(256)) * 8000)
    said = parlour.ada.json("place", "announce", "tea", "--file", str(file), "--method", "_file")
    assert said["size"] == file.stat().st_size
    target = tmp_path / "copy"
    (tmp_path / "copy.part").write_bytes(file.read_bytes()[:70_001])
    words = ("place", "history", "tea", "--save", str(said["message"]), "--to", str(target))
    assert parlour.bea.ok(*words).startswith(f"saved   {target} (2.0 MB)")
    assert target.read_bytes() == file.read_bytes()
    saved = tmp_path / "saved"
    saved.mkdir()
    watched = parlour.bea.run(
        "place",
        "watch",
        "tea",
        "--from",
        str(said["message"]),
        "--count",
        "1",
        "--save-to",
        str(saved),
        "--json",
    )
    assert json.loads(watched.stdout)["size"] == file.stat().st_size
    assert (saved / f"{said['message']}-film.bin").read_bytes() == file.read_bytes()
    assert "nothing can be added" in parlour.ada.fails(
        1, "place", "announce", "tea", "--file", str(file), "--resume", str(said["message"])
    )


def test_wrong_words(parlour: Parlour) -> None:
    assert "give a text or --file" in parlour.ada.fails(2, "place", "announce", "tea", "x", "--file", "y")
    assert "name it with --file" in parlour.ada.fails(2, "place", "announce", "tea", "--resume", "3")
    assert "nothing to say" in parlour.ada.fails(2, "place", "announce", "tea")
    assert "_topic=tea" in parlour.ada.fails(2, "place", "announce", "tea", "--set", "topic")
    assert "No such file" in parlour.ada.fails(2, "place", "announce", "tea", "--file", "/nowhere/at/all")
    assert "talk to the host" in parlour.bea.fails(1, "place", "announce", "tea", "me too")
    assert "there is no place 'pub'" in parlour.ada.fails(2, "place", "announce", "pub", "x")


def test_lists_and_numbers_are_added_to_and_taken_away_from(parlour: Parlour) -> None:
    parlour.hosted("bakery", "--policy", "anonymous")
    say = ("place", "announce", "bakery")
    parlour.ada.ok(*say, "--set", "_list_cakes=|bun", "--set", "_amount_cups=5")
    parlour.ada.ok(*say, "--set", "_list_cakes+=scone", "--set", "_amount_cups+=3")
    parlour.ada.ok(*say, "--set", "_list_cakes-=|bun", "--set", "_amount_cups-=1", "--set", "_topic=a+=b")
    told = {each["name"]: each["text"] for each in parlour.ada.json("place", "look", "bakery")["objects"]}
    assert told == {"_name": "bakery", "_list_cakes": "|scone", "_amount_cups": "7", "_topic": "a+=b"}
    assert "is no list and no number" in parlour.ada.fails(2, *say, "--set", "_topic+=tea")
    assert "is no whole number" in parlour.ada.fails(2, *say, "--set", "_amount_cups+=many")
