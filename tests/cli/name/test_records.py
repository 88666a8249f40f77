"""What can be published and carried as a file, and what is told of it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.name.neighbours import MUSIC, TECH, Neighbours
from tests.cli.shell import Linnet
from tests.cli.village import up


def test_a_label_leads_to_a_place_with_contacts_of_ones_choice(neighbours: Neighbours) -> None:
    bob = neighbours.bob
    told = bob.ok(
        "name", "publish", "Jazz", "--place", MUSIC, "--at", neighbours.carol.address, "--lasts", "2h"
    )
    assert told.startswith("published jazz, good until ")
    [name] = [each for each in bob.json("name", "list")["names"] if each["label"] == "jazz"]
    assert (name["place"], name["contacts"], name["zone"]) == (MUSIC, [neighbours.carol.address], None)
    assert (name["renew"], name["protected"], name["removed"]) == (True, False, False)
    bob.ok("name", "publish", "swing", "--place", "jazz", "--once")
    [copy] = [each for each in bob.json("name", "list")["names"] if each["label"] == "swing"]
    assert (copy["place"], copy["contacts"], copy["renew"]) == (MUSIC, [neighbours.carol.address], False)


def test_a_place_of_this_node_is_meant_by_the_beginning_of_its_id(neighbours: Neighbours) -> None:
    bob = neighbours.bob
    place = bob.json("place", "host", "den")["place"]["place"]
    bob.ok("name", "publish", "den", "--place", place[:14])
    [name] = [each for each in bob.json("name", "list")["names"] if each["label"] == "den"]
    assert name["place"] == place
    assert "there is no place 'lt1aaaaaaaa' here" in bob.fails(
        2, "name", "publish", "x", "--place", "lt1aaaaaaaa"
    )


def test_the_contact_is_where_a_key_alone_leads(neighbours: Neighbours) -> None:
    neighbours.publish(neighbours.bob, "+", "--place", TECH)
    assert neighbours.carol.json("name", "resolve", neighbours.person["bob"])["place"] == TECH
    assert neighbours.carol.json("name", "resolve", f"{neighbours.person['bob']}.zkey")["place"] == TECH


def test_what_cannot_be_published_is_told(neighbours: Neighbours) -> None:
    bob = neighbours.bob
    assert "say what it leads to" in bob.fails(2, "name", "publish", "x")
    assert "--at needs --place" in bob.fails(2, "name", "publish", "x", "--zone", "y", "--at", bob.address)
    assert "you know nobody by the name 'erin'" in bob.fails(2, "name", "publish", "x", "--zone", "erin")
    assert "some are missing" in bob.fails(2, "name", "publish", "x", "--place", MUSIC[:-3])
    assert "unknown" in bob.fails(1, "name", "publish", "x", "--place", f"nothing.{neighbours.person['bob']}")
    assert "only letters, digits" in bob.fails(2, "name", "publish", "a b", "--place", MUSIC)
    assert "is no length of time" in bob.fails(2, "name", "publish", "x", "--place", MUSIC, "--lasts", "soon")
    assert "seconds" in bob.fails(1, "name", "publish", "x", "--place", MUSIC, "--lasts", "400d")
    assert "has no address" in bob.fails(2, "name", "publish", "x", "--place", MUSIC, "--at", "ld1")


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


def test_labels_are_listed_with_who_keeps_them(neighbours: Neighbours) -> None:
    carol = neighbours.carol
    neighbours.publish(carol, "listed", "--place", TECH, "--zone", neighbours.person["bob"])
    lines = carol.ok("name", "list").splitlines()
    assert lines[0] == f"your zone is {neighbours.person['carol']}"
    [row] = [line.split() for line in lines if line.startswith("listed")]
    assert row[1:7] == [TECH, "and", "the", "zone", "of", neighbours.person["bob"]]
    assert row[-4:] == ["yes", "no", "1", "0"]


def test_a_zone_that_says_nothing(tmp_path: Path) -> None:
    with up(tmp_path / "quiet") as quiet:
        assert "linnet name publish LABEL --place PLACE" in quiet.ok("name", "list")


def test_records_are_carried_where_no_node_carries_them(running: Linnet, tmp_path: Path) -> None:
    running.ok("name", "publish", "carried", "--place", MUSIC)
    file = tmp_path / "shared.names"
    wrote = running.ok("name", "export", str(file))
    assert wrote.startswith("wrote ")
    assert wrote.endswith(f" to {file}\n")
    assert "File exists" in running.fails(2, "name", "export", str(file))
    address = f"carried.{running.json('status')['person']}"
    with up(tmp_path / "far") as far:
        assert "unanswered" in far.fails(1, "name", "resolve", address)
        assert far.json("name", "import", str(file))["refused"] == []
        assert far.json("name", "resolve", address)["place"] == MUSIC
        (tmp_path / "bad").write_bytes(b"no records")
        assert "no file of records" in far.fails(1, "name", "import", str(tmp_path / "bad"))
        assert "No such file" in far.fails(2, "name", "import", str(tmp_path / "none"))
