"""Who subscribes to what."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.names import names_of
from linnet.lab.sources.pieces import plain_pieces
from linnet.lab.sources.rows import Bad, Entry
from linnet.lab.sources.subscriptions import NO_PAIR, REPEATED, inspect, parse

NAMES = names_of("salt")


def found(path: Path, text: str, choices: Choices | None = None) -> list[Entry | Bad]:
    path.write_text(text)
    chosen = choices or Choices()
    [piece] = inspect(plain_pieces([path]), chosen)
    return list(parse(enumerate(text.splitlines(), 1), piece, chosen, NAMES))


def test_topics_in_a_line(tmp_path: Path) -> None:
    ada, bea = NAMES.user("1"), NAMES.user("2")
    assert found(tmp_path / "u.txt", "1\t10 20 10\n\n2\t10\n3\t\nx\n") == [
        Entry(1, (ada, "10")),
        Entry(1, (ada, "20")),
        Bad(1, REPEATED, ""),
        Entry(3, (bea, "10")),
        Bad(4, NO_PAIR, "3\t"),
        Bad(5, NO_PAIR, "x"),
    ]


def test_a_pair_in_each_row(tmp_path: Path) -> None:
    ada = NAMES.user("ada")
    topic = NAMES.chat(("tea",), numbers_are_ids=True)
    expected = [Entry(2, (ada, topic)), Bad(3, NO_PAIR, "ada,")]
    assert found(tmp_path / "s.csv", "subscriber,topic\nada,tea\nada,\n") == expected
    choices = Choices(columns=("who", "what"))
    assert found(tmp_path / "s.csv", "who,what\nada,tea\nada,\n", choices) == expected


def test_another_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="name two by --columns"):
        found(tmp_path / "s.csv", "who,what\nada,tea\n")
    with pytest.raises(LabError, match="needs two names"):
        found(tmp_path / "s.csv", "who,what\nada,tea\n", Choices(columns=("who",)))
