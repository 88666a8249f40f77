"""The examples run as they stand, say what they should, and stay small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = {
    "beside_a_node.py": [
        "the home belongs to the node that runs there",
        "kept: rain",
        "kept: sun",
        "new: snow",
    ],
    "chat.py": ["bea reads: Did it arrive?", "ada reads: Yes.", "ada reads: Without one:"],
    "chat_room.py": ["ada: Milk, please.", "bea: Sugar, please."],
    "door_keeper.py": [
        "knock: bea says 'it is me'",
        "bea is in",
        "knock: a stranger says 'let me in'",
        "cal is told: friends only",
        "cal is in the lobby",
        "guests of the club: 1",
    ],
    "durable_reader.py": ["new: one, two", "resumed: three, four, five", "nothing lost, nothing twice: True"],
    "lan_chat.py": [
        "on the LAN, reads: ada is here, bea is here, cai is here",
        "meanwhile, reads: nothing",
        "the remote one reads: ada is here, bea is here, cai is here",
        "through ada, reads: ada is here, bea is here, cai is here, so am I",
    ],
    "feeds.py": [
        "a trader has 2 of 36",
        "a gardener has 7 of 36",
        "a pilot has 6 of 36",
        "a rescuer has 10 of 36",
        "a geologist has 12 of 36",
        "handed over, as the publishers were told: 37",
    ],
    "file_drop.py": ["stops in the middle", "goes on behind 33 %", "1000000 bytes already", "whole: True"],
    "microblog.py": [
        "2: The engine can weave.",
        "3: It has no pretensions",
        "from: Ada's notes",
        "new: Note G is done.",
    ],
    "own_tests.py": ["what is announced is heard: passed"],
    "owned_stream.py": ["kept by 1 storage node", "and published", "and was refused: not_a_publisher"],
    "profile.py": [
        "as it stands: _profile_city is London",
        "now: _profile_city is Turin",
        "gone: _profile_city_district",
        "offline: _profile_city is Turin",
        "offline: _profile_name is Ada L.",
    ],
    "publish_and_subscribe.py": ["bob heard 'rain'", "bob heard 'sun'", "bob heard 'rainbow'"],
    "room.py": [
        "members: 2",
        "while bea is away: at_relay",
        "bea reads: Did it",
        "when bea is back: delivered",
    ],
    "simulate.py": ["    8    100%", "   16    100%", "   32    100%"],
}


def test_every_example_is_known_here() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAID)


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs_and_says_what_it_should(name: str) -> None:
    # With warnings as errors: no example forgets to close something. Not in development mode, in
    # which asyncio also tells of every callback that was slow, as they are on a busy machine.
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    at = 0
    for words in SAID[name]:
        assert words in done.stdout[at:], done.stdout
        at = done.stdout.index(words, at)


@pytest.mark.parametrize("name", SAID)
def test_an_example_is_short_and_says_how_to_run_it(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    assert len(text.splitlines()) < 60
    assert f"Run it: python examples/{name}" in text
