from __future__ import annotations

from tests.cli.identity.terminal import Terminal
from tests.cli.identity.typed import Typed

from linnet.identity.phrase import from_phrase
from linnet.identity.text import Sort, to_text
from linnet.node.keyfiles import load_key


def test_the_words_are_the_key(shell: Typed) -> None:
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


def test_as_json(shell: Typed) -> None:
    person = shell.json("init")["person"]
    found = shell.json("id", "backup", "--yes")
    assert set(found) == {"person", "phrase"}
    assert found["person"] == person
    assert len(found["phrase"].split()) == 24


def test_a_pipe_gets_nothing_unasked(shell: Typed) -> None:
    shell.ok("init")
    for words in (("id", "backup"), ("id", "backup", "--json")):
        result = shell.run(*words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "this is no terminal; say --yes" in result.stderr


def test_a_terminal_is_shown_them(shell: Typed) -> None:
    shell.ok("init")
    with Terminal("id", "backup", "--home", str(shell.home)) as terminal:
        assert terminal.end() == 0
    _, _, words = terminal.shown.partition(
        to_text(Sort.PERSON, load_key(shell.home / "person.key", "person").public)
    )
    assert from_phrase(words) == load_key(shell.home / "person.key", "person").seed


def test_without_a_home_or_its_key(shell: Typed) -> None:
    assert "there is no home" in shell.fails(78, "id", "backup", "--yes")
    shell.ok("init")
    (shell.home / "person.key").rename(shell.home.parent / "elsewhere")
    assert "person.key: the person's key is kept elsewhere" in shell.fails(78, "id", "backup", "--yes")
