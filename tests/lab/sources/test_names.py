"""People become hashes, chats too unless they are numbers."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.names import kept_salt, names_of
from linnet.lab.sources.rows import UNKNOWN_USER


def test_a_person_is_the_same_hash_under_the_same_salt_only() -> None:
    one, same, other = names_of("salt"), names_of("salt"), names_of("pepper")
    assert one.user("Ada") == same.user("Ada") != other.user("Ada")
    assert len(one.user("Ada")) == 16
    assert one.user("Ada") != one.user("Bea")
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert one.user("") == UNKNOWN_USER


def test_a_person_and_a_chat_of_the_same_name_are_not_the_same_hash() -> None:
    names = names_of("salt")
    assert names.user("Ada") != names.chat(("Ada",), numbers_are_ids=True)


def test_numbers_of_chats_are_kept_where_they_are_ids() -> None:
    names = names_of("salt")
    assert names.chat(("113488", "0"), numbers_are_ids=True) == "113488/0"
    stream, topic = names.chat(("113488", "plans"), numbers_are_ids=True).split("/")
    assert stream == "113488"
    assert len(topic) == 16
    assert "4915" not in names.chat(("4915112345",), numbers_are_ids=False)
    assert names_of("salt", keep=True).chat(("general", "plans"), numbers_are_ids=False) == "general/plans"


def test_halves_of_characters_have_a_hash_and_no_place_in_a_table() -> None:
    half = "\ud83d"
    assert names_of("salt").user(half) != names_of("salt").user("?")
    assert names_of("salt", keep=True).chat((f"tea {half}",), numbers_are_ids=False) == "tea ?"


def test_a_salt_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    first = kept_salt(tmp_path / "out")
    assert kept_salt(tmp_path / "out") == first
    assert kept_salt(tmp_path / "other") != first
    assert stat.S_IMODE((tmp_path / "out" / "salt").stat().st_mode) == 0o600


def test_an_empty_salt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--salt is empty"):
        names_of("")
    (tmp_path / "salt").write_text("\n")
    with pytest.raises(LabError, match="is empty"):
        kept_salt(tmp_path)
