from __future__ import annotations

from linnet.cli.room.names import Names
from linnet.node.room_types import MemberView
from linnet.rooms.content import Membership


def member(person: str, label: str) -> MemberView:
    return MemberView(person, label, Membership.JOIN, 0, False, (), False)


ADA, BEA, CAL = "lp1ada" + "a" * 53, "lp1bea" + "b" * 53, "lp1cal" + "c" * 53


def test_a_label_if_there_is_one() -> None:
    names = Names([member(ADA, "ada"), member(BEA, "")])
    assert names.of(ADA) == "ada"
    assert names.of(BEA) == "lp1beabbb…"
    assert names.of(CAL) == "lp1calccc…"


def test_nobody_passes_for_another() -> None:
    names = Names([member(ADA, "ada"), member(BEA, "ada"), member(CAL, "you")], own=ADA)
    assert names.of(ADA) == "you"
    assert names.of(BEA) == "ada (lp1beabbb…)"
    assert names.of(CAL) == "you (lp1calccc…)"


def test_a_card_brings_a_name() -> None:
    names = Names()
    names.learn(ADA, "ada")
    names.learn(BEA, None)
    assert (names.of(ADA), names.of(BEA)) == ("ada", "lp1beabbb…")
    names.learn(BEA, "ada")
    assert names.of(ADA) == "ada (lp1adaaaa…)"


def test_a_name_is_only_shown() -> None:
    assert Names([member(ADA, "\x1b[2Jada")]).of(ADA) == r"\x1b[2Jada"
