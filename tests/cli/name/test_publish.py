"""What can be published, and what is told of it."""

from __future__ import annotations

from tests.cli.name.neighbours import MUSIC, TECH, Neighbours


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
