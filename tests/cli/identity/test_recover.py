from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.cli.identity.terminal import Terminal
from tests.cli.identity.typed import Typed

from linnet.identity.keys import SigningKey
from linnet.identity.phrase import to_phrase
from linnet.identity.text import Sort, to_text

KEY = SigningKey(bytes(range(32)))
PHRASE = to_phrase(KEY.seed)
PERSON = to_text(Sort.PERSON, KEY.public)


def private(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_a_new_device_of_the_same_person(shell: Typed, tmp_path: Path) -> None:
    first = shell.json("init", "--label", "old")
    words = shell.ok("id", "backup", "--yes")
    other = Typed(tmp_path / "other")
    file = private(tmp_path / "words", words.upper())
    found = other.json("id", "recover", "--phrase-file", file, "--person", first["person"], "--label", "new")
    assert found["person"] == first["person"]
    assert found["device"] != first["device"]
    assert found["home"] == str(other.home)
    assert {path.name for path in other.home.iterdir()} == {"device.key", "device.card", "linnet.toml"}
    assert stat.S_IMODE(other.home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in other.home.iterdir()} == {0o600}
    assert 'label = "new"' in (other.home / "linnet.toml").read_text()


def test_the_key_comes_back_only_if_it_is_asked_for(shell: Typed, tmp_path: Path) -> None:
    shell.ok("init")
    words = shell.ok("id", "backup", "--yes")
    other = Typed(tmp_path / "other")
    other.ok("id", "recover", "--phrase-file", "-", "--keep-key", given=words)
    assert (other.home / "person.key").read_bytes() == (shell.home / "person.key").read_bytes()


def test_from_standard_input_and_by_four_letters(shell: Typed) -> None:
    short = "\n".join(word[:4] for word in PHRASE.split())
    said = shell.run("id", "recover", "--phrase-file", "-", given=short)
    assert said.exit_code == 0
    assert f"person  {PERSON}" in said.stdout
    assert f"next    linnet up --home {shell.home}" in said.stdout
    assert "one wrong phrase in 256 looks right" in said.stderr


def test_nothing_is_overwritten_and_nobody_types_in_vain(shell: Typed) -> None:
    shell.ok("init")
    before = {path.name: path.read_bytes() for path in shell.home.iterdir()}
    # The words would be wrong: they are not even looked at.
    said = shell.fails(78, "id", "recover", "--phrase-file", "-", given="nothing")
    assert "is there already; choose another with --home" in said
    assert {path.name: path.read_bytes() for path in shell.home.iterdir()} == before


@pytest.mark.parametrize(
    ("phrase", "said"),
    [
        (
            PHRASE.replace(PHRASE.split()[4], "abandn", 1),
            "word 5 'abandn' is not in the list (nearest: abandon",
        ),
        (" ".join(PHRASE.split()[:23]), "a phrase has 24 words, and these are 23"),
        (" ".join(reversed(PHRASE.split())), "the checksum of this phrase fails"),
        ("", "these are 0"),
        ("x" * 5000, "more than 4096 characters"),
    ],
)
def test_wrong_words_make_no_home_and_say_what_is_wrong(shell: Typed, phrase: str, said: str) -> None:
    told = shell.fails(2, "id", "recover", "--phrase-file", "-", given=phrase)
    assert said in told
    assert "\n" not in told
    # Of the right words nothing is repeated.
    assert not {word for word in PHRASE.split() if len(word) > 5} & set(told.replace("'", " ").split())
    assert not shell.home.exists()


def test_the_words_of_somebody_else(shell: Typed) -> None:
    stranger = to_text(Sort.PERSON, bytes(32))
    said = shell.fails(2, "id", "recover", "--phrase-file", "-", "--person", stranger, given=PHRASE)
    assert f"these are the words of {PERSON}, not of that person" in said
    assert "is no person id" in shell.fails(2, "id", "recover", "--person", "bea")
    assert not shell.home.exists()


def test_a_file_that_others_can_read_or_that_is_no_text(shell: Typed, tmp_path: Path) -> None:
    file = tmp_path / "words"
    file.write_text(PHRASE)
    file.chmod(0o644)
    assert "so others can use it; run chmod 600" in shell.fails(
        78, "id", "recover", "--phrase-file", str(file)
    )
    file.write_bytes(b"\xff\xfe")
    file.chmod(0o600)
    assert "is no text" in shell.fails(2, "id", "recover", "--phrase-file", str(file))
    absent = str(tmp_path / "absent")
    assert "cannot be read" in shell.fails(78, "id", "recover", "--phrase-file", absent)


def test_words_are_no_argument_and_a_pipe_must_be_named(shell: Typed) -> None:
    assert "--phrase-file FILE, or - for standard input" in shell.fails(2, "id", "recover", given=PHRASE)
    assert shell.run("id", "recover", *PHRASE.split()).exit_code == 2
    assert not shell.home.exists()


def test_on_a_terminal_they_are_asked_for_and_not_shown(shell: Typed) -> None:
    words = PHRASE.split()
    with Terminal("id", "recover", "--home", str(shell.home), "--json") as terminal:
        terminal.until("word 1: ")
        terminal.type(" ".join(words[:10]))
        terminal.until("word 11: ")
        terminal.type("abandn")
        terminal.until("word 11 'abandn' is not in the list (nearest: abandon")
        terminal.until("word 11: ")
        terminal.type(" ".join(words[10:]))
        terminal.until("linnet id revoke.")
        assert terminal.end() == 0
    assert not [word for word in set(words) if f" {word} " in terminal.shown]
    line = next(line for line in terminal.shown.splitlines() if line.startswith("{"))
    assert json.loads(line)["person"] == PERSON


def test_on_a_terminal_the_end_of_input_is_told(shell: Typed) -> None:
    with Terminal("id", "recover", "--home", str(shell.home)) as terminal:
        terminal.until("word 1: ")
        terminal.type("\x04")
        terminal.until("the phrase ended after 0 words")
        assert terminal.end() == 1
    assert not shell.home.exists()
