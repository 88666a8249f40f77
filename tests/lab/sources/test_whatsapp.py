"""Chats as WhatsApp exports them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.formats import FORMATS
from linnet.lab.sources.rows import Bad, Found, Said
from linnet.lab.sources.whatsapp import inspect, pieces

ANDROID = """\
a line from elsewhere
31/12/2023, 21:15 - Messages and calls are end-to-end encrypted. Tap to learn more.
31/12/2023, 21:15 - Ada created group "Tea: at four"
31/12/2023, 21:16 - Ada: hello
all of you

and goodbye
31/12/2023, 21:17 - Bea: <Media omitted>
31/12/2023, 21:17 - Bea: IMG-20231231-WA0001.jpg (file attached)
my cat
31/12/2023, 21:18 - +49 151 2345678: time: 10:00
31/02/2024, 21:18 - Ada: never
31/12/2023, 21:19 - Ada: This message was deleted
31/12/2023, 21:20 - Bea:
"""
APPLE = """\
\u200e[12/31/23, 9:15:30\u202fPM] Tea: \u200eMessages and calls are end-to-end encrypted.
[12/31/23, 9:15:31\u202fPM] Ada: hello
\u200e[12/31/23, 9:15:32\u202fPM] ~\u00a0Bea: \u200eimage omitted
\u200e[12/31/23, 9:15:33\u202fPM] Ada: \u200eYou removed Cleo
[12/31/23, 9:15:34\u202fPM] Ada: so \u200e<This message was edited>
"""


def everything(path: Path, choices: Choices | None = None) -> list[Found]:
    chosen = choices or Choices()
    found = inspect(pieces([path]), chosen)
    return [each for piece in found for each in FORMATS["whatsapp"].read(piece, chosen)]


def test_an_export_of_android(tmp_path: Path) -> None:
    path = tmp_path / "WhatsApp Chat with Tea.txt"
    path.write_text(ANDROID)
    found = everything(path)
    said = [each for each in found if isinstance(each, Said)]
    assert [(each.line, each.user, each.kind, each.text) for each in said] == [
        (2, "", "notice", "Messages and calls are end-to-end encrypted. Tap to learn more."),
        (3, "", "notice", 'Ada created group "Tea: at four"'),
        (4, "Ada", "text", "hello\nall of you\n\nand goodbye"),
        (8, "Bea", "file", ""),
        (9, "Bea", "image", "my cat"),
        (11, "+49 151 2345678", "text", "time: 10:00"),
        (13, "Ada", "text", ""),
        (14, "Bea", "text", ""),
    ]
    assert all(each.chars == len(each.text) for each in said)
    assert {(each.chat, each.granularity) for each in said} == {(("WhatsApp Chat with Tea",), "min")}
    assert [(each.line, each.reason) for each in found if isinstance(each, Bad)] == [
        (1, "no message begins before this line"),
        (12, "the time cannot be read"),
    ]


def test_an_export_of_apple(tmp_path: Path) -> None:
    path = tmp_path / "_chat.txt"
    path.write_text(APPLE)
    said = [each for each in everything(path) if isinstance(each, Said)]
    assert [(each.user, each.kind, each.chars) for each in said] == [
        ("Tea", "notice", 44),
        ("Ada", "text", 5),
        ("Bea", "image", 0),
        ("Ada", "notice", 16),
        ("Ada", "text", 2),
    ]
    assert said[0].ts == 1_704_057_330_000
    assert {each.granularity for each in said} == {"s"}


def test_a_zip_file_names_the_chat(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "Tea.zip", "w") as archive:
        archive.writestr("_chat.txt", APPLE)
        archive.writestr("photo.jpg", "x")
    said = [each for each in everything(tmp_path / "Tea.zip") if isinstance(each, Said)]
    assert {each.chat for each in said} == {("Tea",)}
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("photo.jpg", "x")
    with pytest.raises(LabError, match=r"has 0 files \.txt"):
        pieces([tmp_path / "none.zip"])


def test_chats_of_the_same_name_in_two_folders_stay_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_chat.txt").write_text(APPLE)
    assert [piece.chat for piece in pieces([tmp_path])] == ["a/_chat", "b/_chat"]


def test_an_unknown_order_says_which_option_to_give(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("1/2/24, 10:00 - Ada: hi\n")
    with pytest.raises(LabError, match=r"chat\.txt.*--dates dmy"):
        everything(path)
    with pytest.raises(LabError, match="--dates 'ymm'"):
        everything(path, Choices(dates="ymm"))
    for order, ts in (("dmy", 1_706_781_600_000), ("mdy", 1_704_189_600_000)):
        [said] = everything(path, Choices(dates=order))
        assert isinstance(said, Said)
        assert said.ts == ts
