"""Live nodes: Alice publishes, Bob calls her alice, Carol comes by Bob's word to Alice's place."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.name.neighbours import MUSIC, TECH, Neighbours
from tests.cli.shell import Linnet


def test_carol_comes_by_bobs_word_to_alices_place(neighbours: Neighbours) -> None:
    alice, bob, carol = neighbours.alice, neighbours.bob, neighbours.carol
    person = neighbours.person
    neighbours.publish(alice, "music", "--place", MUSIC)
    bob.ok("name", "petname", "set", "alice", person["alice"])
    neighbours.publish(bob, "alice", "--zone", "alice")
    carol.ok("name", "petname", "set", "bob", person["bob"])
    told = carol.json("name", "resolve", "music.alice.bob")
    assert (told["place"], told["contacts"], told["fault"]) == (MUSIC, [alice.address], None)
    assert [(step["via"], step["name"], step["says"], step["leads_to"]) for step in told["path"]] == [
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
    neighbours.publish(alice, "gone", "--place", TECH)
    assert carol.json("name", "resolve", "gone.ally")["place"] == TECH
    alice.ok("name", "remove", "gone")
    result = carol.run("name", "resolve", "gone.ally", "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["place"], told["fault"], told["label"]) == (1, None, "removed", "gone")
    neighbours.publish(alice, "brief", "--place", TECH, "--lasts", "1s", "--once")
    while (fault := json.loads(carol.run("name", "resolve", "brief.ally", "--json").stdout)["fault"]) is None:
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
