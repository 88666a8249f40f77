from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.store.entries import unit

from linnet.api.node_commands import Check
from linnet.cli.room.rooms import room_row
from linnet.core.errors import StoreError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.net.config import NetConfig
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.doctor import connection_checks, home_checks
from linnet.node.health import NodeFacts, node_checks
from linnet.node.home import DAY, Home, held, init, open_home
from linnet.node.keyfiles import KeyFileError
from linnet.node.library import Node
from linnet.peer.interface import NodeStatus, PeerStatus, Unanswered
from linnet.rooms.commands import RoomStatus
from linnet.rooms.event_types import Membership
from linnet.store.sqlite import SqliteStore

NOW = 1_800_000_000.0
OWN, TRACKER = PeerId(b"o" * 32), PeerId(b"t" * 32)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return init(tmp_path / "home", NOW).home


def by_name(path: Path, now: float = NOW) -> dict[str, Check]:
    return {check.name: check for check in home_checks(path, now)}


def test_a_good_home_passes_everything(home: Home) -> None:
    checks = by_name(home.path)
    assert list(checks) == [
        *("home", "disk", "clock", "configuration", "device key", "person key", "card", "store"),
        *("stored events", "stored times", "listening", "descriptors"),
    ]
    assert all(check.ok for check in checks.values())
    assert "365 more days" in checks["card"].detail


def test_what_is_wrong_is_found_with_advice(home: Home) -> None:
    home.path.chmod(0o750)
    home.config.write_text("[node]\nlisten = ['127.0.0.1:1', 'x']\n")
    home.person_key.chmod(0o644)
    home.device_key.write_text("nonsense")
    home.store.write_bytes(b"no database" * 1000)
    checks = by_name(home.path)
    wrong = {name: check.advice for name, check in checks.items() if not check.ok}
    assert list(wrong) == [
        *("home", "configuration", "device key", "person key", "card", "store"),
        *("listening", "descriptors"),
    ]
    assert wrong["home"] == f"run chmod 700 {home.path}"
    assert "linnet.toml:2: node.listen[1]" in checks["configuration"].detail


def test_no_home(tmp_path: Path) -> None:
    assert list(home_checks(tmp_path / "none", NOW)) == [
        Check("home", False, f"{tmp_path / 'none'} is not there", "make one: linnet init")
    ]


def test_a_card_at_its_end_and_a_clock_never_set(home: Home) -> None:
    late = by_name(home.path, NOW + 400 * DAY)["card"]
    assert late.detail == f"{home.card}: card_expired: the card ended at 2028-01-15T08:00:00+00:00"
    assert (
        late.advice == "check this machine's clock; if it is right, the next start renews the card: linnet up"
    )
    home.person_key.unlink()
    alone = by_name(home.path, NOW + 400 * DAY)["card"]
    assert alone.detail == late.detail
    assert "linnet id renew --phrase-file FILE" in alone.advice
    assert "linnet id link ld1" in alone.advice
    with pytest.raises(KeyFileError) as raised:
        open_home(home.path, NOW + 400 * DAY)
    assert str(raised.value) == f"{alone.detail}; {alone.advice}", "linnet up says the same"
    assert not by_name(home.path, 0.0)["clock"].ok


def test_a_card_tells_from_when_to_when_it_is_good(home: Home) -> None:
    assert "from 2027-01-15T07:00:00+00:00 to 2028-01-15T08:00:00+00:00" in by_name(home.path)["card"].detail


def test_a_clock_behind_what_the_store_has_seen_is_named(home: Home) -> None:
    def write(*moments: float) -> None:
        with closing(SqliteStore(home.store)) as store:
            for moment in moments:
                store.log.append(unit(int(moment), at=moment))
            store.commit(lambda: None)

    write(NOW)
    assert by_name(home.path)["stored times"].detail == "last written at 2027-01-15T08:00:00+00:00"
    write(NOW + 900 * DAY)
    behind = by_name(home.path)["stored times"]
    assert not behind.ok
    assert "2029-07-03" in behind.detail
    assert "clock" in behind.advice
    write(NOW + 60)
    mended = by_name(home.path)["stored times"]
    assert mended.ok
    assert "once the clock was ahead, at 2029-07-03" in mended.detail


@pytest.mark.parametrize(
    ("ahead", "is_right"),
    [
        ((-0.2,), True),
        ((61.0,), False),
        ((-9e7, -0.1, 0.2), True),
        ((9e7, 9e7 + 1, 0.2), False),
        ((0.1, 9e7), True),
    ],
)
def test_our_clock_is_compared_with_those_of_peers(ahead: tuple[float, ...], is_right: bool) -> None:
    told = replace(status(), clocks=tuple(sorted(ahead)))
    (check,) = (
        each
        for each in node_checks(NodeFacts(told, NodeConfig(), 0.0, None))
        if each.name == "clocks of peers"
    )
    assert (check.ok, bool(check.advice)) == (is_right, not is_right)


def test_of_two_clocks_that_differ_none_is_called_wrong() -> None:
    facts = NodeFacts(replace(status(), clocks=(94_608_000.0,)), NodeConfig(), 0.0, None)
    (check,) = (each for each in node_checks(facts) if each.name == "clocks of peers")
    assert check.detail == "this node's clock is behind its only linked peer by 1095 days, 0:00:00"
    assert check.advice == "set the clock of this machine, or that of the peer"


def test_who_agrees_with_another_is_not_told_to_set_the_clock() -> None:
    facts = NodeFacts(replace(status(), clocks=(-0.2, 94_608_000.0)), NodeConfig(), 0.0, None)
    (check,) = (each for each in node_checks(facts) if each.name == "clocks of peers")
    assert check.ok
    assert check.detail == "2 peers: -0.2 s from ours in the middle; 1 of them say another time"


def test_a_device_that_was_revoked_is_told_so() -> None:
    facts = NodeFacts(status(), NodeConfig(), 0.0, None)
    assert "device" not in {each.name for each in node_checks(facts)}
    room = RoomStatus(TopicId(bytes(32)), "tea", Membership.JOIN, False, 2, (), (), 1, 1, 1, 0, 0, 0, 0, 0)
    seen_in_room = replace(facts, status=replace(status(), rooms=(replace(room, revoked=True),)))
    for each in (replace(facts, revoked=True), seen_in_room):
        (check,) = (check for check in node_checks(each) if check.name == "device")
        assert not check.ok
        assert "revoked" in check.detail
        assert "linnet id ask" in check.advice
    assert room_row(room)[2] == "join"
    assert room_row(replace(room, revoked=True))[2] == "revoked"


def test_a_copy_of_the_home_that_runs_elsewhere_is_told() -> None:
    twin = link(False, Reason.DUPLICATE_LINK)
    gone = (Unanswered(TRACKER, NOW, Reason.DUPLICATE_LINK),)
    for told in (status((twin,)), replace(status(), unanswered=gone)):
        (check,) = (
            each for each in node_checks(NodeFacts(told, NodeConfig(), 0.0, None)) if each.name == "twin"
        )
        assert not check.ok
        assert check.detail.startswith("this device also runs elsewhere: 1 peer had another link of it")
    well = status((link(True, None), link(False, Reason.DIAL_TIMEOUT)))
    assert "twin" not in {each.name for each in node_checks(NodeFacts(well, NodeConfig(), 0.0, None))}


def test_a_tracker_that_does_not_answer_has_since_when() -> None:
    contact = Contact(TRACKER, ("tls://h:1",))
    config = NodeConfig(node=NodeSection(trackers=(f"{to_text(Sort.DEVICE, TRACKER)}@tls://h:1",)))
    assert config.trackers == (contact,)
    link = PeerStatus(
        TRACKER, False, True, (), False, None, None, "", (), Reason.CONNECTION_REFUSED, 1_790_000_000.0
    )
    facts = NodeFacts(replace(status(), peers=(link,)), config, 0.0, None)
    (check,) = (each for each in node_checks(facts) if each.name.startswith("tracker "))
    assert check.detail.startswith("not linked since 2026-09-21")
    assert check.detail.endswith(": connection_refused")


def test_a_clock_that_is_ahead_of_all_peers_is_said_to_be() -> None:
    told = replace(status(), clocks=(-10800.2, -10799.9))
    checks = node_checks(NodeFacts(told, NodeConfig(), 0.0, None))
    (check,) = (each for each in checks if each.name == "clocks of peers")
    assert check.detail == "this node's clock is ahead of all of 2 peers by 3:00:00"
    assert check.advice == "set the clock"


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        path = init(tmp_path / "home", NOW, NodeConfig(node=NodeSection(listen=(address,)))).home.path
        check = by_name(path)["listening"]
    assert (check.ok, check.advice) == (
        False,
        "stop what uses the port, or name another: linnet up --listen HOST:PORT",
    )


def test_a_running_node_is_left_alone(home: Home) -> None:
    with held(home):
        checks = by_name(home.path)
    assert (checks["store"].ok, "listening" in checks) == (True, False)


def status(peers: tuple[PeerStatus, ...] = (), reachable: bool | None = None) -> NodeStatus:
    reason = Reason.CONNECTION_REFUSED if reachable is False else None
    return NodeStatus(OWN, bytes(32), 0.0, (), ("tls://h:1",), reachable, reason, (), peers, (), ())


def link(up: bool, failure: Reason | None) -> PeerStatus:
    return PeerStatus(TRACKER, up, True, (), False, 0.01, 0.0, "", (), failure)


def test_a_node_tells_what_it_knows() -> None:
    config = NodeConfig(node=NodeSection(trackers=(f"{to_text(Sort.DEVICE, TRACKER)}@h:1",)))
    failed = {
        check.name.split()[0]: check
        for check in node_checks(
            NodeFacts(
                status((link(False, Reason.DIAL_TIMEOUT),), reachable=False),
                config,
                5.0,
                StoreError("disk"),
                3,
            )
        )
        if not check.ok
    }
    assert list(failed) == ["clock", "store", "trace", "reachable", "tracker"]
    assert "unreachable_inbound: connection_refused" in failed["reachable"].detail
    assert failed["tracker"].advice.startswith("linnet doctor ld1")
    good = node_checks(NodeFacts(status((link(True, None),), reachable=True), config, 0.0, None))
    assert [check.ok for check in good] == [True] * 6


async def test_the_way_to_a_peer_is_walked() -> None:
    async with Node() as hub:
        steps = [check async for check in connection_checks(hub.contact, NetConfig())]
        assert len(steps) == 7
        assert all(check.ok for check in steps)
        dead = Contact(hub.peer, ("tls://127.0.0.1:1", *hub.contact.hints))
        steps = [check async for check in connection_checks(dead, NetConfig())]
    assert [check.ok for check in steps] == [True, False] + [True] * 7
    assert steps[1].advice


def test_a_home_that_cannot_be_written_is_named_and_the_rest_is_looked_at(home: Home) -> None:
    home.lock.mkdir()  # stands for a read-only disk: a test that runs as root may write anything else
    checks = by_name(home.path)
    assert [name for name, check in checks.items() if not check.ok] == ["store"]
    assert "cannot be written" in checks["store"].detail
    assert checks["store"].advice == "make it writable, or name another home"
    assert "descriptors" in checks
