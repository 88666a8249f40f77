"""Slack's messages as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.pieces import Piece, plain_pieces
from linnet.lab.sources.rows import Bad, Said
from linnet.lab.sources.slack_csv import inspect, parse
from linnet.lab.sources.slack_kinds import BOT

PIECE = Piece("e.csv", "e.csv", granularity="s")
TEXT = """ts,channel,user,kind,chars,thread_ts
1517436010.000936,0,9,bot_message,4,
1517436037.000348,1,1,channel_join,35,
1517436495.000136,2,2,msg,167,
1517436496.000136,2,3,msg,7,1517436495.000136
1517436497.000136,2,,message_changed,7,
1517436498.000136,2,3,dance,7,
x,2,3,msg,7,
1517436499.0,2,,msg,7,
1517436499.0,2,1,msg,-,
"""


def test_threads_belong_to_their_channel_and_joins_are_notices() -> None:
    found = list(parse(enumerate(TEXT.splitlines(), 1), PIECE, Choices()))
    assert found[:4] == [
        Said(2, ("0",), 1_517_436_010_000, "9", 4, "text", "s"),
        Said(3, ("1",), 1_517_436_037_000, "1", 35, "notice", "s"),
        Said(4, ("2",), 1_517_436_495_000, "2", 167, "text", "s"),
        Said(5, ("2",), 1_517_436_496_000, "3", 7, "text", "s"),
    ]
    assert [(bad.line, bad.reason) for bad in found[4:] if isinstance(bad, Bad)] == [
        (6, "left out: an edit of another message"),
        (7, "its subtype is not known"),
        (8, "the time cannot be read"),
        (9, "it does not say in which channel, or who"),
        (10, "chars is no count"),
    ]


def test_bots_can_be_left_out() -> None:
    found = list(parse(enumerate(TEXT.splitlines()[:2], 1), PIECE, Choices(without_bots=True)))
    assert [(bad.line, bad.reason) for bad in found if isinstance(bad, Bad)] == [(2, BOT)]


def test_the_clock_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(TEXT)
    assert [piece.granularity for piece in inspect(plain_pieces([path]), Choices())] == ["s"]
    path.write_text("ts,channel\n1,2\n")
    with pytest.raises(LabError, match="no column user, kind, chars"):
        inspect(plain_pieces([path]), Choices())
