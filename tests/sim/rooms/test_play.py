"""The experiments of Schichtholz 2024, section 6.4, on the shipped node in simulation."""

from __future__ import annotations

import os

import pytest

from linnet.sim.rooms.experiments import experiment, names, round_robin
from linnet.sim.rooms.oracle import async_delivered
from linnet.sim.rooms.traffic import Action, Do, Played, Traffic, parse_traffic, play

SEEDS = range(1, 21) if os.environ.get("LINNET_SOAK") else (1,)
SMALL = [name for name in names() if os.environ.get("LINNET_SOAK") or not name.startswith("fe2-20")]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SMALL)
def test_the_experiment_comes_out_as_published(name: str, seed: int) -> None:
    found = experiment(name)
    expectations = found.check([play(traffic, seed) for traffic in found.runs])
    assert [each.what for each in expectations if not each.holds] == []
    assert expectations


def shown(played: Played) -> list[tuple[str, str, str, str, str]]:
    return [entry.cells() for entry in played.log.entries]


def test_equal_seeds_are_equal_runs() -> None:
    traffic = round_robin(3, 3)  # So that relays have to be chosen, too.
    first, again, other = play(traffic, 5), play(traffic, 5), play(traffic, 6)
    assert shown(first) == shown(again)
    assert first.trace_sha256 == again.trace_sha256 != other.trace_sha256


def traffic_of(*actions: Action, peers: int = 2, relays: int = 1) -> Traffic:
    return Traffic(actions=actions, peers=peers, relays=relays, relay_of={})


def test_a_node_that_knows_of_a_ban_declines_to_speak() -> None:
    played = play(
        traffic_of(
            Action(do=Do.BAN, user="peer0", target="peer1", pause=3.0),
            Action(do=Do.MESSAGE, user="peer1", content="still here?", pause=3.0),
        )
    )
    ban, said = played.outcomes
    assert (ban.refused, len(ban.events)) == (None, 1)
    assert (said.refused is not None, said.events) == (True, ())
    assert [entry.user for entry in played.log.find("send")] == ["peer0"]


def test_who_is_offline_says_nothing() -> None:
    played = play(
        traffic_of(
            Action(do=Do.OFFLINE, user="peer1", pause=1.0),
            Action(do=Do.OFFLINE, user="peer1", pause=1.0),
            Action(do=Do.MESSAGE, user="peer1", content="anyone?", pause=1.0),
        )
    )
    assert played.outcomes[2].refused == "crashed"
    assert len(played.log.find("offline", "peer1")) == 1


def test_online_peers_need_no_relay() -> None:
    played = play(traffic_of(Action(do=Do.MESSAGE, user="peer0", content="hello", pause=2.0), relays=0))
    event = played.event(0)
    assert event == 1
    assert [entry.user for entry in played.log.find("receive", event=event)] == ["peer1"]


def test_state_and_levels_are_events_too() -> None:
    played = play(
        traffic_of(
            Action(do=Do.POWER_LEVEL_USER, user="peer0", target="peer1", level=60, pause=2.0),
            Action(do=Do.STATE, user="peer1", kind="topic", content="birds", pause=2.0),
            Action(do=Do.POWER_LEVEL_EVENT, user="peer0", kind="topic", level=70, pause=2.0),
            Action(do=Do.STATE, user="peer1", kind="topic", content="fish", pause=2.0),
        )
    )
    assert [entry.type for entry in played.log.find("send")] == [
        "m.room.power_levels",
        "m.room.topic",
        "m.room.power_levels",
    ]
    assert played.outcomes[3].refused == "no_power"


def test_a_file_with_people_who_begin_away() -> None:
    traffic = Traffic(
        actions=(
            Action(do=Do.ONLINE, user="peer0", pause=2.0),
            Action(do=Do.MESSAGE, user="peer0", content="first", pause=2.0),
            Action(do=Do.OFFLINE, user="peer0", pause=2.0),
            Action(do=Do.ONLINE, user="peer1", pause=5.0),
        ),
        peers=2,
        relays=1,
        relay_of={},
        away=("peer0", "peer1"),
    )
    played = play(traffic)
    assert async_delivered(played.log.entries, played.event(1) or 0, "peer0", "peer1")


def test_progress_is_told() -> None:
    told: list[float] = []
    text = '{"messages": [{"action": "message", "user": "peer0", "content": "x"}], "relays": 0}'
    play(parse_traffic(text, "file"), progress=lambda done, what: told.append(done))
    assert told == [0.0]
