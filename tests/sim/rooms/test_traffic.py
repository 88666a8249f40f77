from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import ConfigError
from linnet.sim.rooms.traffic import Action, Do, Traffic, duration, kind_of, parse_traffic, type_of

LISTING_13 = {
    "messages": [
        {"action": "online", "user": "peer0", "pauseAfter": "1s"},
        {"action": "offline", "user": "peer1", "pauseAfter": "3s"},
        {"action": "message", "user": "peer0", "content": "a sentence", "pauseAfter": "4s"},
        {"action": "offline", "user": "peer0", "pauseAfter": "3s"},
        {"action": "online", "user": "peer1", "pauseAfter": "1s"},
    ]
}


def parsed(*messages: dict[str, Any], **top: object) -> Traffic:
    return parse_traffic(json.dumps({"messages": messages, **top}), "file")


def wrong(*messages: dict[str, Any], **top: object) -> str:
    with pytest.raises(ConfigError) as caught:
        parsed(*messages, **top)
    return str(caught.value)


def test_the_published_example_is_read() -> None:
    assert parse_traffic(json.dumps(LISTING_13), "file") == Traffic(
        actions=(
            Action(do=Do.ONLINE, user="peer0", pause=1.0),
            Action(do=Do.OFFLINE, user="peer1", pause=3.0),
            Action(do=Do.MESSAGE, user="peer0", content="a sentence", pause=4.0),
            Action(do=Do.OFFLINE, user="peer0", pause=3.0),
            Action(do=Do.ONLINE, user="peer1", pause=1.0),
        ),
        peers=2,
        relays=0,
        relay_of={},
    )
    assert parse_traffic(json.dumps(LISTING_13), "file").seconds == 12.0


def test_every_action_has_its_fields() -> None:
    traffic = parsed(
        {"action": "onlineBatch", "users": ["peer0", "peer2"], "online": False},
        {"action": "ban", "user": "peer0", "targetUser": "peer1"},
        {"action": "powerLevelEvent", "user": "peer0", "eventType": "m.room.name", "level": 100},
        {"action": "powerLevelUser", "user": "peer0", "targetUser": "peer1", "level": -5},
        {"action": "state", "user": "peer0", "eventType": "topic", "content": "birds"},
        {"action": "resyncRelay", "user": "peer3", "relay": "relay1"},
        defaultPause="200ms",
        relayOf={"peer0": "relay0"},
    )
    assert traffic.actions == (
        Action(do=Do.ONLINE_BATCH, user="peer0", users=("peer0", "peer2"), online=False, pause=0.2),
        Action(do=Do.BAN, user="peer0", target="peer1", pause=0.2),
        Action(do=Do.POWER_LEVEL_EVENT, user="peer0", kind="name", level=100, pause=0.2),
        Action(do=Do.POWER_LEVEL_USER, user="peer0", target="peer1", level=-5, pause=0.2),
        Action(do=Do.STATE, user="peer0", kind="topic", content="birds", pause=0.2),
        Action(do=Do.RESYNC_RELAY, user="peer3", relay="relay1", pause=0.2),
    )
    assert (traffic.peers, traffic.relays, traffic.relay_of) == (4, 2, {"peer0": "relay0"})


def test_errors_name_the_entry_and_the_field() -> None:
    fine = {"action": "online", "user": "peer0"}
    assert wrong(fine, {"action": "message", "user": "peer0"}) == "file: messages[1]: content: is missing"
    assert "messages[0]: user: is missing" in wrong({"action": "online"})
    assert "messages[0]: action: 'fly' is none of message, online" in wrong({"action": "fly"})
    assert "messages[0]: pauseAfter: '3' is no duration" in wrong({**fine, "pauseAfter": "3"})
    assert "messages[0]: content: there is no such field here" in wrong({**fine, "content": "x"})
    assert "user: 'relay0' is none of peer0" in wrong({"action": "online", "user": "relay0"})
    level = {"action": "powerLevelUser", "user": "peer0", "targetUser": "peer1", "level": True}
    assert "level: True is no whole number" in wrong(level)
    batch = {"action": "onlineBatch", "users": ["peer0"], "online": 1}
    assert "online: 1 is neither true nor false" in wrong(batch)
    assert "users: is empty or names somebody twice" in wrong({**batch, "users": [], "online": True})
    assert "relayOf.peer0: 'peer1' is none of relay0" in wrong(fine, relayOf={"peer0": "peer1"})
    assert wrong({**fine, "user": "peer7"}, peers=3) == "file: peer7 is named, and there are 3 peers"
    assert "at most 64 peers are allowed" in wrong({**fine, "user": "peer64"})
    assert "file: peers: 65 is not from 1 to 64" in wrong(peers=65)
    assert "file: defaultPause: '61m' is longer" in wrong(defaultPause="61m")
    assert "file: colour: there is no such field" in wrong(colour="red")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"messages": {}}', '{"messages": [1]}', "\xff"])
def test_what_is_no_traffic_file_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match="file"):
        parse_traffic(text, "file")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda v: (
            st.lists(v)
            | st.dictionaries(st.sampled_from(("messages", "action", "user", "users", "peers")), v)
        ),
    )
)
def test_anything_is_read_or_refused(value: object) -> None:
    try:
        parse_traffic(json.dumps(value), "file")
    except ConfigError as error:
        assert str(error).startswith("file")  # noqa: PT017 - either is right


def test_durations() -> None:
    assert [duration(text) for text in ("3s", "1.5s", "200ms", "2m", "0s")] == [3.0, 1.5, 0.2, 120.0, 0.0]
    for text in ("3", "s", "-1s", "1e3s", " 1s", "1h", "nans"):
        with pytest.raises(ConfigError, match="is no duration"):
            duration(text)


def test_names_of_matrix_are_ours() -> None:
    assert kind_of("m.room.power_levels") == "power"
    assert kind_of("m.room.message") == kind_of("message") == "message"
    assert kind_of("org.example.poll") == "org.example.poll"
    for kind in ("power", "member", "message", "name", "relay"):
        assert kind_of(type_of(kind)) == kind
    assert type_of("relay") == "relay"
