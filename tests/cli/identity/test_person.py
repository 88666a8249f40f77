from __future__ import annotations

from pathlib import Path

import pytest

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.identity.person import person_key
from linnet.identity.keys import SigningKey
from linnet.identity.phrase import to_phrase
from linnet.net.clock import Clock
from linnet.node.home import HomeError, init

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
