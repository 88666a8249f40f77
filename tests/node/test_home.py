from __future__ import annotations

import multiprocessing
import os
import stat
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from linnet.core.errors import ConfigError
from linnet.identity.cards import check_card, check_dates
from linnet.identity.keys import SigningKey
from linnet.node.config import ControlSection, NodeConfig, NodeSection
from linnet.node.home import (
    DAY,
    Home,
    HomeBusy,
    HomeError,
    control_token,
    held,
    home_path,
    init,
    new_home,
    open_home,
)
from linnet.node.keyfiles import KeyFileError, load_card

NOW = 1_700_000_000.0


def test_a_new_home_is_private_and_complete(tmp_path: Path) -> None:
    opened = init(tmp_path / "home", NOW, NodeConfig(node=NodeSection(label="desk")))
    home = opened.home
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    assert {each.name: stat.S_IMODE(each.stat().st_mode) for each in home.path.iterdir()} == {
        "person.key": 0o600,
        "device.key": 0o600,
        "device.card": 0o600,
        "linnet.toml": 0o600,
    }
    card = opened.identity.card
    check_card(card)
    check_dates(card, NOW)
    assert (card.label, card.device_key) == ("desk", opened.identity.peer)
    assert opened.config.node.label == "desk"
    assert open_home(home.path, NOW).identity.peer == opened.identity.peer


def test_init_never_touches_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    init(tmp_path / "home", NOW)
    before = (tmp_path / "home" / "device.key").read_bytes()
    with pytest.raises(HomeError, match="is there already"):
        init(tmp_path / "home", NOW)
    assert (tmp_path / "home" / "device.key").read_bytes() == before


def test_a_home_that_fails_half_way_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="cannot be made"), new_home(tmp_path / "home") as home:
        (home.path / "file").rename(home.path / "none" / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_second_device_of_a_person(tmp_path: Path) -> None:
    person = SigningKey(bytes(32))
    one, two = init(tmp_path / "one", NOW, person=person), init(tmp_path / "two", NOW, person=person)
    assert one.identity.author == two.identity.author == person.public
    assert one.identity.peer != two.identity.peer


def test_a_card_that_is_gone_is_made_anew_if_the_person_key_is_there(tmp_path: Path) -> None:
    opened = init(tmp_path / "home", NOW)
    opened.home.card.unlink()
    card = open_home(opened.home.path, NOW + DAY).identity.card
    assert (card.person, card.device_key) == (opened.identity.card.person, opened.identity.card.device_key)
    assert load_card(opened.home.card) == card
    opened.home.card.unlink()
    opened.home.person_key.unlink()
    with pytest.raises(HomeError, match="on a device that holds your key"):
        open_home(opened.home.path, NOW)


def test_a_card_near_its_end_is_renewed_if_the_person_key_is_there(tmp_path: Path) -> None:
    opened = init(tmp_path / "home", NOW)
    first = opened.identity.card
    later = NOW + 300 * DAY
    assert open_home(opened.home.path, later).identity.card == first
    later = NOW + 364 * DAY
    renewed = open_home(opened.home.path, later).identity.card
    assert renewed.not_after > first.not_after
    assert load_card(opened.home.card) == renewed
    opened.home.person_key.unlink()
    kept = open_home(opened.home.path, later + DAY)
    assert (kept.identity.card, kept.has_person_key) == (renewed, False)
    with pytest.raises(KeyFileError, match=r"card_expired.*person\.key"):
        open_home(opened.home.path, later + 400 * DAY)


@pytest.mark.parametrize("jump", [5 * 3600, 400 * DAY, 3 * 365 * DAY])
def test_one_start_with_a_wrong_clock_leaves_a_home_that_opens(tmp_path: Path, jump: float) -> None:
    home = init(tmp_path / "home", NOW).home
    ahead = open_home(home.path, NOW + jump).identity.card
    check_dates(ahead, NOW + jump)
    again = open_home(home.path, NOW + 60).identity.card
    check_dates(again, NOW + 60)
    check_dates(open_home(home.path, NOW - jump).identity.card, NOW - jump)
    check_dates(open_home(home.path, NOW + 120).identity.card, NOW + 120)


def test_without_the_person_key_the_card_before_a_wrong_clock_is_taken(tmp_path: Path) -> None:
    opened = init(tmp_path / "home", NOW)
    open_home(opened.home.path, NOW + 3 * 365 * DAY)
    opened.home.person_key.rename(tmp_path / "elsewhere")
    assert open_home(opened.home.path, NOW + 60).identity.card == opened.identity.card
    opened.home.card_before.write_bytes(b"something else")
    with pytest.raises(KeyFileError, match=r"card_not_yet_valid.*clock"):
        open_home(opened.home.path, NOW + 60)


def test_what_is_wrong_with_a_home_is_said(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="linnet init"):
        open_home(tmp_path / "none", NOW)
    one, two = init(tmp_path / "one", NOW).home, init(tmp_path / "two", NOW).home
    one.card.write_bytes(two.card.read_bytes())
    with pytest.raises(KeyFileError, match="is for another device"):
        open_home(one.path, NOW)
    one.device_key.write_bytes(two.device_key.read_bytes())
    with pytest.raises(KeyFileError, match="signed by another person"):
        open_home(one.path, NOW)
    two.config.write_text("[node]\nlabel = 5\n")
    with pytest.raises(ConfigError, match=r"linnet\.toml:2: node\.label"):
        open_home(two.path, NOW)
    two.path.chmod(0o755)
    with pytest.raises(KeyFileError, match=r"mode 0755.*chmod 700"):
        open_home(two.path, NOW)


def test_where_the_home_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LINNET_HOME", raising=False)
    assert home_path() == tmp_path / ".linnet"
    monkeypatch.setenv("LINNET_HOME", str(tmp_path / "other"))
    assert home_path() == tmp_path / "other"
    assert home_path(tmp_path / "x" / ".." / "given") == tmp_path / "given"


def test_a_long_path_gets_a_short_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    short, long = Home(Path("/h")), Home(Path("/" + "h" * 120))
    assert short.socket(ControlSection()) == Path("/h/control.sock")
    assert long.socket(ControlSection()).parent == tmp_path / "linnet"
    assert long.socket(ControlSection()) == long.socket(ControlSection())
    assert stat.S_IMODE((tmp_path / "linnet").stat().st_mode) == 0o700
    assert short.socket(ControlSection(socket="run/c.sock")) == Path("/h/run/c.sock")
    with pytest.raises(HomeError, match="too long for a Unix socket"):
        short.socket(ControlSection(socket="/" + "x" * 101))
    (tmp_path / "linnet").chmod(0o755)
    with pytest.raises(KeyFileError, match="mode 0755"):
        long.socket(ControlSection())


def test_the_token_is_private_and_stays(tmp_path: Path) -> None:
    home = init(tmp_path / "home", NOW).home
    token = control_token(home)
    assert len(token) >= 40
    assert control_token(home) == token
    assert stat.S_IMODE(home.token.stat().st_mode) == 0o600


def _holds(path: str, inside: Event) -> None:
    with held(Home(Path(path))):
        inside.set()
        multiprocessing.Event().wait()


def test_one_process_at_a_time_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    home = init(tmp_path / "home", NOW).home
    context = multiprocessing.get_context("spawn")
    inside = context.Event()
    process = context.Process(target=_holds, args=(str(home.path), inside))
    process.start()
    try:
        assert inside.wait(30)
        with pytest.raises(HomeBusy, match=f"process {process.pid}"), held(home):
            pass
    finally:
        process.kill()
        process.join()
    with held(home):
        assert home.lock.read_text() == f"{os.getpid()}\n"
        with pytest.raises(HomeBusy), held(home):
            pass
