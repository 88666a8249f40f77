"""Addresses in words; and live nodes: Carol comes by Bob's word to Alice's place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.name.neighbours import MUSIC, TECH, Neighbours
from tests.cli.shell import Linnet

from linnet.cli.names import HINTS, fault_text, leads_to_text, path_lines
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.identity.text import Sort, person_text, to_text, topic_text
from linnet.names.commands import Fault, NameStatus, NotResolved, Resolved, Step, Via

BOB, PLACE = AuthorId(b"b" * 32), TopicId(b"p" * 32)


BOB_TEXT, PLACE_TEXT = person_text(BOB), topic_text(PLACE)


def test_every_fault_has_a_way_out() -> None:
    assert set(HINTS) == {fault.value for fault in Fault}


def test_where_a_path_begins() -> None:
    for via, line in (
        (Via.PETNAME, f"bob: you call {BOB_TEXT} so"),
        (Via.KEY, f"{BOB_TEXT}: you gave this key"),
        (Via.OWN, f"{BOB_TEXT}: your own zone"),
    ):
        path = (Step(via, "bob" if via is Via.PETNAME else "", None, BOB, None),)
        assert path_lines(NotResolved("a", Fault.UNKNOWN, "", None, path, "")) == [line]


def test_in_our_own_zone_we_say_so_ourselves() -> None:
    path = (
        Step(Via.OWN, "", None, BOB, None),
        Step(Via.PLACE, "music", BOB, None, None, DeviceId(bytes(8)), PLACE),
    )
    lines = path_lines(Resolved("music", PLACE, (), path, 1))
    assert lines[1] == f"music: you say that it is the place {PLACE_TEXT}"


@pytest.mark.parametrize("fault", list(Fault))
def test_a_fault_is_one_line(fault: Fault) -> None:
    text = fault_text(NotResolved("x.bob", fault, "x", BOB, (), "for this\x1b[1m reason"))
    assert text.startswith(f"x.bob: {fault.value.replace('_', ' ')}: for this\\x1b[1m reason; ")
    assert "\n" not in text


def test_what_a_label_leads_to() -> None:
    def name(place: TopicId | None, zone: AuthorId | None, removed: bool = False) -> NameStatus:
        return NameStatus("x", False, place, (), zone, 1, 1, True, removed, ())

    assert leads_to_text(name(PLACE, None)) == PLACE_TEXT
    assert leads_to_text(name(PLACE, BOB)) == f"{PLACE_TEXT} and the zone of {BOB_TEXT}"
    assert leads_to_text(name(None, BOB)) == f"the zone of {BOB_TEXT}"
    assert leads_to_text(name(None, None, True)) == "removed"


def test_carol_comes_by_bobs_word_to_alices_place(neighbours: Neighbours) -> None:
    alice, bob, carol = neighbours.alice, neighbours.bob, neighbours.carol
    person = neighbours.person
    neighbours.publish(alice, "music", "--place", MUSIC)
    bob.ok("name", "petname", "set", "alice", person["alice"])
    neighbours.publish(bob, "alice", "--zone", "alice")
    carol.ok("name", "petname", "set", "bob", person["bob"])
    told = carol.json("name", "resolve", "music.alice.bob")
    assert (told["place"], told["contacts"], told["type"]) == (MUSIC, [alice.address], "resolved")
    assert [
        (step["via"], step["name"], step["says"], step["place"] or step["zone"]) for step in told["path"]
    ] == [
        ("petname", "bob", None, person["bob"]),
        ("delegation", "alice", person["bob"], person["alice"]),
        ("place", "music", person["alice"], MUSIC),
    ]
    assert told["expires"] == min(step["expires"] for step in told["path"][1:])
    lines = carol.ok("name", "resolve", "Music.alice.bob.gnu").splitlines()
    assert lines[:3] == [MUSIC, f"enter at {alice.address}", f"bob: you call {person['bob']} so"]
    assert f"alice.bob: bob says that it is the zone of {person['alice']}, until " in lines[3]
    assert f"music.alice.bob: alice.bob says that it is the place {MUSIC}, until " in lines[4]
    assert bob.json("name", "resolve", "music.alice")["place"] == MUSIC
    assert carol.json("name", "resolve", f"music.{person['alice']}.zkey")["place"] == MUSIC


def test_faults_are_told_with_their_step_and_what_to_do(neighbours: Neighbours) -> None:
    alice, carol = neighbours.alice, neighbours.carol
    carol.ok("name", "petname", "set", "ally", neighbours.person["alice"])
    unknown = carol.fails(1, "name", "resolve", "cooking.ally")
    assert f"ally: you call {neighbours.person['alice']} so\n" in unknown
    assert "linnet: cooking.ally: unknown: 'cooking' in the zone lp1" in unknown
    assert "add --password" in unknown
    assert unknown.count("if it has a password") == 1
    neighbours.publish(alice, "gone", "--place", TECH)
    assert carol.json("name", "resolve", "gone.ally")["place"] == TECH
    alice.ok("name", "remove", "gone")
    result = carol.run("name", "resolve", "gone.ally", "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["type"]) == (1, "not_resolved")
    assert (told["fault"], told["label"]) == ("removed", "gone")
    neighbours.publish(alice, "brief", "--place", TECH, "--lasts", "5s", "--once")
    while (
        fault := json.loads(carol.run("name", "resolve", "brief.ally", "--json").stdout).get("fault")
    ) is None:
        pass
    assert fault == "expired"
    neighbours.publish(alice, "round", "--zone", neighbours.person["alice"])
    looping = carol.fails(1, "name", "resolve", "round.round.ally")
    assert "round.round.ally: looping: 'round'" in looping
    neighbours.publish(alice, "here", "--place", TECH)
    assert "not a zone: 'here'" in carol.fails(1, "name", "resolve", "x.here.ally")


def test_what_is_mistyped_is_told(neighbours: Neighbours, tmp_path: Path) -> None:
    assert "a dot too many" in neighbours.bob.fails(2, "name", "resolve", "music..alice")
    assert "you know nobody by the name 'nobody'" in neighbours.bob.fails(1, "name", "resolve", "x.nobody")
    assert "start one with: linnet up" in Linnet(tmp_path / "none").fails(69, "name", "resolve", "x.y")


def test_a_password_comes_from_a_file_or_standard_input(neighbours: Neighbours, tmp_path: Path) -> None:
    alice, carol = neighbours.alice, neighbours.carol
    (tmp_path / "secret").write_text("swordfish\nnot this\n")
    file = ("--password-file", str(tmp_path / "secret"))
    neighbours.publish(alice, "club", "--place", TECH, *file)
    address = f"club.{neighbours.person['alice']}"
    assert carol.json("name", "resolve", address, *file)["place"] == TECH
    from_input = carol.json("name", "resolve", address, "--password-file", "-", given="swordfish\n")
    assert from_input["place"] == TECH
    assert "unknown: 'club'" in carol.fails(1, "name", "resolve", address)
    assert "unknown: 'club'" in carol.fails(
        1, "name", "resolve", address, "--password-file", "-", given="x\n"
    )
    assert "no terminal to ask" in carol.fails(2, "name", "resolve", address, "--password")


ERIN, OTHER = (to_text(Sort.PERSON, letter * 32) for letter in (b"e", b"o"))


def test_petnames_are_set_listed_and_removed(running: Linnet) -> None:
    assert "you know nobody by a name" in running.ok("name", "petname", "list")
    assert running.ok("name", "petname", "set", "Erin", ERIN) == f"you call {ERIN} erin\n"
    assert running.json("name", "petname", "list") == {"petnames": [{"name": "erin", "person": ERIN}]}
    shown = running.ok("name", "petname", "list").splitlines()[2:]
    assert [line.split() for line in shown] == [["erin", ERIN]]
    assert "somebody else already" in running.fails(1, "name", "petname", "set", "erin", OTHER)
    assert "some are missing" in running.fails(2, "name", "petname", "set", "erin", ERIN[:-3])
    assert "means something else" in running.fails(2, "name", "petname", "set", "gnu", ERIN)
    assert running.ok("name", "petname", "remove", "erin") == "you call nobody erin any more\n"
    assert "nobody is known by the name" in running.fails(1, "name", "petname", "remove", "erin")
