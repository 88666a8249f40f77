from __future__ import annotations

import pytest
import typer

from linnet.api.items import EndedView, SubscribedView
from linnet.api.places import (
    ChangedView,
    KnockedView,
    LostView,
    MessageView,
    PlaceItemView,
    VariableView,
)
from linnet.cli.exits import Failure
from linnet.cli.place.printer import PlacePrinter, file_name, message_line, speakers
from linnet.core.ids import AuthorId, TopicId
from linnet.identity.text import person_text
from linnet.places.deed import Deed, Policy

ADA, BEA = AuthorId(b"a" * 32), AuthorId(b"b" * 32)
BEGIN = SubscribedView(1, False)


def message(number: int, text: str | None = "hello", **more: object) -> MessageView:
    body = None if text is None else text.encode()
    return MessageView(number, "_message", "lp1ada", 5, (), body, text, **more)  # type: ignore[arg-type]


def deed(*cohosts: AuthorId) -> Deed:
    signature = bytes(64)
    return Deed(TopicId(b"t" * 32), 2, Policy.PUBLIC, ADA, cohosts, (), signature)


def test_messages_and_changes_are_printed_and_all_else_is_told_beside(
    capsys: pytest.CaptureFixture[str],
) -> None:
    items: list[PlaceItemView] = [
        BEGIN,
        message(2),
        MessageView(3, "_notice_keepalive", "lp1ada", 0),
        ChangedView("lt1", 4, "_topic", b"tea", "tea"),
        KnockedView("lt1", "lp1bea", "_request_place_enter", (), "let me in"),
        LostView("lt1", 5, 6, "not_allowed"),
        message(7, nym="lp1beaaaaaaaaaa"),
        EndedView(None),
    ]
    PlacePrinter(False).run(iter(items))
    told = capsys.readouterr()
    assert told.out == "2 _message hello\n_topic\ttea\n7 lp1beaaaaa… _message hello\n"
    assert "lp1bea knocks: let me in" in told.err
    assert "lost: message 5 to 6: not_allowed" in told.err


def test_where_several_speak_each_line_says_who_did() -> None:
    ada, bea, cai = person_text(ADA), person_text(BEA), person_text(AuthorId(b"c" * 32))
    said_by = speakers(deed(BEA))
    by_ada = MessageView(2, "_message", ada, 5, (), b"hello", "hello")
    assert message_line(by_ada, said_by) == "2 host _message hello"
    by_bea = MessageView(3, "_message", bea, 5, (), b"hello", "hello")
    assert message_line(by_bea, said_by) == f"3 cohost {bea[:10]}… _message hello"
    by_another = MessageView(4, "_message", cai, 5, (), b"hello", "hello")
    assert message_line(by_another, said_by) == f"4 former host {cai[:10]}… _message hello"
    assert message_line(message(5, nym=bea), said_by) == f"5 {bea[:10]}… _message hello"
    assert speakers(deed()) is None


def test_what_is_lost_that_was_ours_to_see_and_an_end_by_the_node_fail() -> None:
    with pytest.raises(typer.Exit) as caught:
        PlacePrinter(False).run(iter([BEGIN, LostView("lt1", 5, 6, "not_held"), EndedView(None)]))
    assert caught.value.exit_code == 1
    with pytest.raises(Failure, match="it ended: shutdown"):
        PlacePrinter(True).run(iter([BEGIN, EndedView("shutdown")]))


def test_escapes_of_strangers_do_not_reach_the_terminal_nor_their_paths_the_disk() -> None:
    assert "\x1b" not in message_line(message(1, "\x1b[2Jhello"))
    long = MessageView(9, "_file", "lp1ada", 5_000_000)
    assert "get it with: linnet place history --save 9" in message_line(long)
    for given, name in (
        ("../../etc/passwd", "9-passwd"),
        ("..", "9"),
        ("a\x1bb", "9-ab"),
        ("film.mp4", "9-film.mp4"),
    ):
        variables = (VariableView(":", "_file_name", given.encode(), given),)
        assert file_name(MessageView(9, "_file", "lp1ada", 5, variables)) == name
