from __future__ import annotations

import json

import pytest

from linnet.cli.room.outcome import tell_sent, went_to
from linnet.node.room_types import SentReply


@pytest.mark.parametrize(
    ("neighbors", "relays", "words"),
    [
        (0, 0, "nobody yet: it goes out when a member or relay appears"),
        (1, 0, "1 member online"),
        (0, 2, "2 relays"),
        (3, 1, "3 members online and 1 relay"),
    ],
)
def test_to_whom_it_went(neighbors: int, relays: int, words: str) -> None:
    assert went_to(SentReply("lt1", ("le1",), neighbors, ("ld1",) * relays)) == words


def test_it_is_told_in_words_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    reply = SentReply("lt1", ("le1",), 1, ())
    tell_sent(reply, "done", False)
    assert capsys.readouterr().out == "done\nsent to 1 member online\n"
    tell_sent(reply, "done", True)
    assert json.loads(capsys.readouterr().out)["neighbors"] == 1
