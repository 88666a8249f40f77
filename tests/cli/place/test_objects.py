from __future__ import annotations

from tests.cli.place.parlour import Parlour


def test_objects_by_prefix_and_by_best_match(parlour: Parlour) -> None:
    parlour.hosted("gallery")
    parlour.ada.ok("place", "announce", "gallery", "--set", "_art_old=vase", "--set", "_art_new=mobile")
    assert parlour.ada.ok("place", "look", "gallery", "_art") == "_art_new\tmobile\n_art_old\tvase\n"
    assert parlour.ada.ok("place", "look", "gallery", "_art_old_greek", "--at") == "_art_old\tvase\n"
    assert [each["name"] for each in parlour.ada.json("place", "look", "gallery")["objects"]] == [
        "_art_new",
        "_art_old",
        "_name",
    ]
    assert "nothing called _x" in parlour.ada.fails(1, "place", "look", "gallery", "_x")


def test_what_is_added_to_one_object_in_one_command_all_counts(parlour: Parlour) -> None:
    parlour.hosted("pantry")
    say = ("place", "announce", "pantry")
    parlour.ada.ok(
        *say, "--set", "_list_cakes+=scone", "--set", "_list_cakes+=bun", "--set", "_amount_cups=9"
    )
    parlour.ada.ok(*say, "--set", "_amount_cups-=2", "--set", "_amount_cups-=3", "--set", "_list_cakes+=pie")
    told = {each["name"]: each["text"] for each in parlour.ada.json("place", "look", "pantry")["objects"]}
    assert told == {"_name": "pantry", "_list_cakes": "|scone|bun|pie", "_amount_cups": "4"}
