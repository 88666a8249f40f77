from __future__ import annotations

from tests.cli.shell import Linnet

from linnet.identity.text import Sort, to_text

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
