from __future__ import annotations

from tests.cli.shell import Linnet

WORDS = ("sim", "mass-join", "--nodes", "24", "--at", "60")


def test_both_protocols_side_by_side(shell: Linnet) -> None:
    found = shell.json(*WORDS)
    assert [(each["control"], each["join"]) for each in found] == [
        ("counter", 0.0),
        ("counter", 0.05),
        ("naive", 0.0),
        ("naive", 0.05),
    ]
    assert [each["regular"] for each in found[:2]] == [True, True]


def test_a_table_for_people(shell: Linnet) -> None:
    said = shell.ok(*WORDS, "--throttle", "0.1")
    assert said.count("all at once") == 2
    assert said.count("every 0.1 s") == 2
