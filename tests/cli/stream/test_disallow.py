from __future__ import annotations

import pytest
from tests.cli.stream.conftest import Diary

from linnet.cli.stream.disallow import meant
from linnet.core.errors import BadText
from linnet.identity.keys import device_id
from linnet.identity.text import Sort, to_text

KEY = b"k" * 32


def test_a_person_or_a_device_is_meant() -> None:
    person = to_text(Sort.PERSON, KEY)
    assert meant("s", f" {person.upper()} ").person == person
    assert meant("s", to_text(Sort.DEVICE, KEY)).device == device_id(KEY).hex()
    assert meant("s", "5268357E181C9BC5").device == "5268357e181c9bc5"
    for nobody in ("bea", "5268357e181c9bcx", to_text(Sort.EVENT, KEY)):
        with pytest.raises(BadText):
            meant("s", nobody)


def test_who_is_put_out_is_named_and_who_was_never_in_is_not(diary: Diary) -> None:
    diary.ada.ok("stream", "allow", "me/diary", diary.bea.ok("stream", "request", diary.stream))
    device = diary.bea.json("status")["device"]
    assert "put out bea" in diary.ada.ok("stream", "disallow", "me/diary", device)
    assert "no reader" in diary.ada.fails(1, "stream", "disallow", "me/diary", device)
    diary.ada.ok("stream", "allow", "me/diary", diary.bea.ok("stream", "request", diary.stream))
    told = diary.ada.json("stream", "disallow", "me/diary", diary.bea.json("status")["person"])
    assert [reader["key"] for reader in told["changed"]] == [device]
    assert told["readers"] == []
