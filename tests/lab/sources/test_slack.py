"""Slack's own export."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.rows import Bad, Found, Said
from linnet.lab.sources.slack import inspect, pieces, read
from linnet.lab.sources.slack_kinds import BOT


def message(ts: str, **more: object) -> dict[str, object]:
    return {"type": "message", "ts": ts, **more}


DAY = [
    message("1717436011.431003", user="U1", text="a &lt;b&gt;"),
    message("1717436012.5", user="U2", text="in a thread", thread_ts="1717436011.431003"),
    message("1717436013.0", user="U3", text="has joined", subtype="channel_join"),
    message("1717436014.0", bot_id="B1", text="beep", subtype="bot_message"),
    message("1717436015.0", user="U1", text="see", files=[{"mimetype": "image/png"}]),
    message("1717436016.0", user="U1", text="This message was deleted.", subtype="tombstone"),
    message("1717436017.0", user="U1", text="x", subtype="message_changed"),
    message("1717436018.0", text="nobody"),
    message("1717436018.0", user=7),
]


def export(folder: Path) -> Path:
    (folder / "general").mkdir(parents=True)
    (folder / "general" / "2024-06-03.json").write_text(json.dumps(DAY, indent=1))
    (folder / "users.json").write_text("[]")
    return folder


def everything(path: Path, choices: Choices) -> list[Found]:
    found = inspect(pieces([path]), choices)
    return [each for piece in found for each in read(piece, choices)]


def test_a_folder_and_a_zip_file_are_read_alike(tmp_path: Path) -> None:
    folder = export(tmp_path / "export")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for path in sorted(folder.rglob("*.json")):
            archive.write(path, path.relative_to(folder))
    found = everything(folder, Choices())
    assert found == everything(tmp_path / "export.zip", Choices())
    said = [each for each in found if isinstance(each, Said)]
    assert [(each.user, each.chars, each.kind) for each in said] == [
        ("U1", 5, "text"),
        ("U2", 11, "text"),
        ("U3", 10, "notice"),
        ("B1", 4, "text"),
        ("U1", 3, "image"),
        ("U1", 0, "text"),
    ]
    assert {(each.chat, each.granularity) for each in said} == {(("general",), "ms")}
    assert said[0].ts == 1_717_436_011_431
    bad = [each for each in found if isinstance(each, Bad)]
    assert [each.reason for each in bad] == [
        "left out: an edit of another message",
        "it does not say who",
        "it is no message of Slack",
    ]
    assert bad[-1].line == json.dumps(DAY, indent=1).splitlines().index('  "user": 7') - 2


def test_pieces_are_days_with_their_channel(tmp_path: Path) -> None:
    [piece] = pieces([export(tmp_path / "export")])
    assert (piece.shown, piece.chat) == ("2024-06-03.json", "general")


def test_bots_can_be_left_out(tmp_path: Path) -> None:
    found = everything(export(tmp_path / "export"), Choices(without_bots=True))
    assert [each.reason for each in found if isinstance(each, Bad)].count(BOT) == 1


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("users.json", "[]")
    with pytest.raises(LabError, match="is it an export of Slack"):
        pieces([tmp_path / "a.zip"])
    (tmp_path / "2024-01-01.json").write_text('[{"a": 1}]')
    with pytest.raises(LabError, match="no list of Slack's messages"):
        inspect(pieces([tmp_path / "2024-01-01.json"]), Choices())
    (tmp_path / "b.zip").write_text("PK")
    with pytest.raises(LabError, match="no zip file"):
        pieces([tmp_path / "b.zip"])
