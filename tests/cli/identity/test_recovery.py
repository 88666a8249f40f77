from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest
from tests.cli.identity.terminal import Terminal
from tests.cli.shell import Linnet

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.identity import person_key, read_phrase
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.identity.words import from_phrase, to_phrase
from linnet.net.clock import Clock
from linnet.node.home import HomeError, init
from linnet.node.keyfiles import KeyFileError, load_key


def test_a_private_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "words"
    file.write_text("zoo\n zoo")
    file.chmod(0o600)
    assert read_phrase(file) == "zoo\n zoo"
    file.chmod(0o640)
    with pytest.raises(KeyFileError, match="so others can use it"):
        read_phrase(file)


def test_a_pipe_of_the_shell_is_a_file_too() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"zoo zoo")
    os.close(writing)
    try:
        assert read_phrase(Path(f"/dev/fd/{reading}")) == "zoo zoo"
    finally:
        os.close(reading)


def test_standard_input_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("zoo zoo"))
    with pytest.raises(Failure, match="--phrase-file FILE, or - for standard input") as caught:
        read_phrase(None)
    assert caught.value.code is ExitCode.USAGE
    assert read_phrase(Path("-")) == "zoo zoo"


def test_what_is_no_text_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "words"
    file.write_bytes(b"zoo \xff")
    file.chmod(0o600)
    with pytest.raises(Failure, match="is no text") as caught:
        read_phrase(file)
    assert caught.value.__suppress_context__
    assert "zoo" not in str(caught.value)


KEY = SigningKey(b"p" * 32)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return init(tmp_path / "home", Clock().now(), person=KEY).home.path


def words(path: Path, key: SigningKey) -> Path:
    path.write_text(to_phrase(key.seed))
    path.chmod(0o600)
    return path


def test_the_key_of_the_home_or_of_its_words(home: Path, tmp_path: Path) -> None:
    assert person_key(home).public == KEY.public
    (home / "person.key").unlink()
    with pytest.raises(Failure, match=r"person\.key: the person's key is kept elsewhere") as caught:
        person_key(home)
    assert caught.value.code is ExitCode.CONFIGURATION
    assert person_key(home, words(tmp_path / "words", KEY)).public == KEY.public


def test_nobody_elses(home: Path, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="the key of another person"):
        person_key(home, words(tmp_path / "words", SigningKey(b"x" * 32)))
    with pytest.raises(HomeError, match="there is no home"):
        person_key(tmp_path / "absent")


def test_the_words_are_the_key(shell: Linnet) -> None:
    person = shell.json("init")["person"]
    result = shell.run("id", "backup", "--yes")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith(" 1 ")
    key = load_key(shell.home / "person.key", "person")
    assert from_phrase(result.stdout) == key.seed
    assert "Whoever reads these words is you" in result.stderr
    assert person in result.stderr
    assert person == to_text(Sort.PERSON, key.public)


def test_as_json(shell: Linnet) -> None:
    person = shell.json("init")["person"]
    found = shell.json("id", "backup", "--yes")
    assert set(found) == {"person", "phrase"}
    assert found["person"] == person
    assert len(found["phrase"].split()) == 24


def test_a_pipe_gets_nothing_unasked(shell: Linnet) -> None:
    shell.ok("init")
    for words in (("id", "backup"), ("id", "backup", "--json")):
        result = shell.run(*words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "this is no terminal; say --yes" in result.stderr


def test_a_terminal_is_shown_them(shell: Linnet) -> None:
    shell.ok("init")
    with Terminal("id", "backup", "--home", str(shell.home)) as terminal:
        assert terminal.end() == 0
    _, _, words = terminal.shown.partition(
        to_text(Sort.PERSON, load_key(shell.home / "person.key", "person").public)
    )
    assert from_phrase(words) == load_key(shell.home / "person.key", "person").seed


def test_without_a_home_or_its_key(shell: Linnet) -> None:
    assert "there is no home" in shell.fails(78, "id", "backup", "--yes")
    shell.ok("init")
    (shell.home / "person.key").rename(shell.home.parent / "elsewhere")
    assert "person.key: the person's key is kept elsewhere" in shell.fails(78, "id", "backup", "--yes")


RECOVERED_KEY = SigningKey(bytes(range(32)))


PHRASE = to_phrase(RECOVERED_KEY.seed)


PERSON = to_text(Sort.PERSON, RECOVERED_KEY.public)


def private(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_a_new_device_of_the_same_person(shell: Linnet, tmp_path: Path) -> None:
    first = shell.json("init", "--label", "old")
    words = shell.ok("id", "backup", "--yes")
    other = Linnet(tmp_path / "other")
    file = private(tmp_path / "words", words.upper())
    found = other.json("id", "recover", "--phrase-file", file, "--person", first["person"], "--label", "new")
    assert found["person"] == first["person"]
    assert found["device"] != first["device"]
    assert found["home"] == str(other.home)
    assert {path.name for path in other.home.iterdir()} == {"device.key", "device.card", "linnet.toml"}
    assert stat.S_IMODE(other.home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in other.home.iterdir()} == {0o600}
    assert 'label = "new"' in (other.home / "linnet.toml").read_text()


def test_the_key_comes_back_only_if_it_is_asked_for(shell: Linnet, tmp_path: Path) -> None:
    shell.ok("init")
    words = shell.ok("id", "backup", "--yes")
    other = Linnet(tmp_path / "other")
    other.ok("id", "recover", "--phrase-file", "-", "--keep-key", given=words)
    assert (other.home / "person.key").read_bytes() == (shell.home / "person.key").read_bytes()


def test_from_standard_input_and_by_four_letters(shell: Linnet) -> None:
    short = "\n".join(word[:4] for word in PHRASE.split())
    said = shell.run("id", "recover", "--phrase-file", "-", given=short)
    assert said.exit_code == 0
    assert f"person  {PERSON}" in said.stdout
    assert f"next    linnet up --home {shell.home}" in said.stdout
    assert "one wrong phrase in 256 looks right" in said.stderr


def test_nothing_is_overwritten_and_nobody_types_in_vain(shell: Linnet) -> None:
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
def test_wrong_words_make_no_home_and_say_what_is_wrong(shell: Linnet, phrase: str, said: str) -> None:
    told = shell.fails(2, "id", "recover", "--phrase-file", "-", given=phrase)
    assert said in told
    assert "\n" not in told
    # Of the right words nothing is repeated.
    assert not {word for word in PHRASE.split() if len(word) > 5} & set(told.replace("'", " ").split())
    assert not shell.home.exists()


def test_the_words_of_somebody_else(shell: Linnet) -> None:
    stranger = to_text(Sort.PERSON, bytes(32))
    said = shell.fails(2, "id", "recover", "--phrase-file", "-", "--person", stranger, given=PHRASE)
    assert f"these are the words of {PERSON}, not of that person" in said
    assert "is no person id" in shell.fails(2, "id", "recover", "--person", "bea")
    assert not shell.home.exists()


def test_a_file_that_others_can_read_or_that_is_no_text(shell: Linnet, tmp_path: Path) -> None:
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


def test_words_are_no_argument_and_a_pipe_must_be_named(shell: Linnet) -> None:
    assert "--phrase-file FILE, or - for standard input" in shell.fails(2, "id", "recover", given=PHRASE)
    assert shell.run("id", "recover", *PHRASE.split()).exit_code == 2
    assert not shell.home.exists()


def test_on_a_terminal_they_are_asked_for_and_not_shown(shell: Linnet) -> None:
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


def test_on_a_terminal_the_end_of_input_is_told(shell: Linnet) -> None:
    with Terminal("id", "recover", "--home", str(shell.home)) as terminal:
        terminal.until("word 1: ")
        terminal.type("\x04")
        terminal.until("the phrase ended after 0 words")
        assert terminal.end() == 1
    assert not shell.home.exists()
