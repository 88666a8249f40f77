from __future__ import annotations

from tests.cli.stream.conftest import Diary

from linnet.cli.stream.readers import heading
from linnet.node.sealed_types import ReadersReply


def test_readers_are_listed_with_the_age_of_the_key(diary: Diary) -> None:
    diary.ada.ok("stream", "allow", "me/diary", diary.bea.ok("stream", "request", diary.stream))
    told = diary.ada.ok("stream", "readers", "me/diary")
    assert "is sealed; its key is number" in told
    assert f"bea   {diary.ada.json('stream', 'readers', 'me/diary')['readers'][0]['device']}" in told
    diary.ada.ok("stream", "disallow", "me/diary", diary.bea.json("status")["person"])
    assert diary.ada.json("stream", "readers", "me/diary")["readers"] == []
    assert "does not seal" in diary.bea.fails(1, "stream", "readers", diary.stream)


def test_a_stream_in_which_nothing_was_said() -> None:
    assert "nobody let in yet" in heading(ReadersReply("s", "lt1", 0, None, ()))
