"""What the doctor says of rooms, places and streams that reach nobody."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.api.node_commands import Check
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.health import STARTING, NodeFacts, reach_checks
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.commands import RingStatus, TrackerlessStatus
from linnet.peer.interface import ContentStatus, NodeStatus, PeerStatus, Unanswered
from linnet.peer.whereabouts import Company
from linnet.places.commands import PlaceIs
from linnet.places.deed import Deed, Policy
from linnet.rooms.commands import RelayStatus, RoomStatus
from linnet.rooms.event_types import Membership
from linnet.streams.commands import StreamStatus

NOW = 1_790_000_000.0
OWN, ANN, RELAY = PeerId(b"o" * 32), PeerId(b"a" * 32), PeerId(b"r" * 32)
TEA = TopicId(b"t" * 32)
TRACKED = NodeConfig(node=NodeSection(trackers=(f"{to_text(Sort.DEVICE, ANN)}@h:1",)))
DOWN = PeerStatus(ANN, False, True, (), False, None, None, "", (), Reason.CONNECTION_REFUSED, NOW - 3600)
UP = replace(DOWN, up=True, last_failure=None, failing_since=None)
NODE = NodeStatus(OWN, bytes(32), NOW - 9000, (), (), None, None, (), (), (), ())
ROOM = RoomStatus(TEA, "tea", Membership.JOIN, False, 2, (), (), 1, 1, 1, 0, 0, 0, 0, 0)
STREAM = StreamStatus("news", TEA, None, (), (), False, 1, 0, 0, 0, 0, 0, 0, 0, 0, ())
DEED = Deed(TEA, 1, Policy.PUBLIC, b"h" * 32, (), (), bytes(64))  # type: ignore[arg-type]
PLACE = PlaceIs(
    TEA,
    "café",
    DEED,
    "guest",
    None,
    1,
    1,
    1,
    1,
    0,
    2,
    (),
    (),
    0,
    0,
    bytes(32),
    0,
    (Contact(ANN, ("tls://a:1",)),),
)


def looked(
    status: NodeStatus,
    *places: PlaceIs,
    config: NodeConfig | None = None,
    ring: TrackerlessStatus | None = None,
    now: float = NOW,
) -> list[Check]:
    return list(reach_checks(NodeFacts(status, config or NodeConfig(), 0.0, ring=ring), places, now))


def with_room(room: RoomStatus, *peers: PeerStatus) -> NodeStatus:
    return replace(NODE, rooms=(room,), peers=peers, company=(Company(TEA, (), (ANN,)),))


def test_a_room_whose_members_do_not_answer_is_named_with_since_when_and_the_next_step() -> None:
    (check,) = looked(with_room(ROOM, DOWN))
    assert (check.name, check.ok) == ("room tea", False)
    assert check.detail.startswith("no link to any member or relay since 2026-09-21 13:13:20+00:00: ld1")
    assert check.detail.endswith("connection_refused")
    assert "linnet connect KEY@HOST:PORT" in check.advice
    assert "new invitation" in check.advice
    assert "linnet room relays tea --add" in check.advice


def test_a_relay_that_is_caught_is_named_with_the_next_step_and_one_that_lost_events_is_only_told() -> None:
    relay = RelayStatus(RELAY, (), True, True, None, None, None)
    caught = replace(relay, fault=Reason.WITHHELD)
    (well, check) = looked(with_room(replace(ROOM, relays=(caught,)), UP))
    assert (well.name, well.ok) == ("rooms reached", True)
    assert (check.ok, check.detail) == (False, "withheld, by its own signed statements")
    assert check.name.startswith("relay ld1")
    assert check.name.endswith("of room tea")
    assert "linnet room relays tea --move ld1" in check.advice
    (_, told) = looked(with_room(replace(ROOM, relays=(replace(relay, fault=Reason.LOST),)), UP))
    assert (told.ok, told.advice) == (True, "")
    assert "restored copy" in told.detail


def test_a_room_with_anyone_at_the_other_end_is_well() -> None:
    relay = RelayStatus(RELAY, (), True, True, None, None, None)
    for room in (replace(ROOM, online=(ANN,)), replace(ROOM, relays=(relay,))):
        (check,) = looked(with_room(room, UP))
        assert (check.name, check.ok) == ("rooms reached", True)
    (check,) = looked(with_room(replace(ROOM, relays=(replace(relay, up=False),)), DOWN))
    assert not check.ok
    assert "--add" not in check.advice


def test_rooms_of_which_nothing_is_expected_are_not_spoken_of() -> None:
    for room in (
        replace(ROOM, members=1),
        replace(ROOM, membership=Membership.LEAVE),
        replace(ROOM, relay=True),
    ):
        assert looked(with_room(room, DOWN)) == []


def test_just_after_a_start_it_is_too_early_to_say() -> None:
    young = replace(with_room(ROOM), started_at=NOW - STARTING + 1)
    (check,) = looked(young)
    assert (check.ok, "just started" in check.detail) == (True, True)
    (check,) = looked(young, now=NOW + 1)
    assert not check.ok
    assert "no address of them is known" in check.detail
    failing = replace(young, peers=(DOWN,))
    assert not looked(failing)[0].ok, "who was tried and did not answer is told at once"


def test_a_place_whose_host_is_away_is_named() -> None:
    (check,) = looked(replace(NODE, peers=(DOWN,)), PLACE)
    assert (check.name, check.ok) == ("place café", False)
    assert "check that the host's node runs" in check.advice
    assert looked(NODE, replace(PLACE, role="host")) == []
    (check,) = looked(replace(NODE, peers=(UP,)), replace(PLACE, upstreams=(ANN,)))
    assert check.ok


def test_a_place_whose_host_is_away_is_named_though_another_guest_is_linked() -> None:
    other, cohost = replace(UP, peer=RELAY), PeerId(b"c" * 32)
    cafe = replace(PLACE, speakers=(ANN, cohost), downstreams=(RELAY,), upstreams=())
    for place in (cafe, replace(cafe, upstreams=(RELAY,))):
        (check,) = looked(replace(NODE, peers=(DOWN, other)), place)
        assert (check.name, check.ok) == ("place café", False)
        assert check.detail.startswith("no link to the host since 2026-09-21 13:13:20+00:00: ld1")
        assert check.detail.endswith("connection_refused; others are linked, and pass on what they have")
        assert "check that the host's node runs" in check.advice
    (check,) = looked(replace(NODE, peers=(DOWN, other, replace(UP, peer=cohost))), cafe)
    assert check.ok, "a co-host is there"
    (check,) = looked(replace(NODE, peers=(other,)), replace(cafe, upstreams=(RELAY,)))
    assert check.ok, "many guests away from the host nobody dials it"


def test_a_stream_without_neighbours_and_tracker_is_named() -> None:
    lonely = replace(NODE, streams=(STREAM,), peers=(DOWN,))
    (check,) = looked(lonely, config=TRACKED)
    assert (check.name, check.ok) == ("stream news", False)
    assert "node.trackers" in check.advice
    assert "linnet connect" not in check.advice, "a link by hand is of no use to a stream"
    assert looked(lonely) == [], "no tracker was named: nobody is missing"
    assert looked(replace(lonely, peers=(UP,)), config=TRACKED) == [], "the tracker knows of nobody else"
    assert looked(replace(lonely, streams=(replace(STREAM, neighbors=(ANN,)),)), config=TRACKED) == []


def test_a_stream_on_a_ring_whose_members_do_not_answer_is_named() -> None:
    def ring(known: int) -> TrackerlessStatus:
        topic = RingStatus(TEA, known, (), (), (), 0)
        return TrackerlessStatus(1, (), (), (), 1, 0, (topic,), 0, 0)

    lonely = replace(NODE, streams=(replace(STREAM, overlay=Overlay.RING),), peers=(DOWN,))
    (check,) = looked(lonely, ring=ring(1))
    assert (check.name, check.ok) == ("stream news", False)
    assert looked(lonely, ring=ring(0)) == [], "nobody else is known to be in it"


def test_content_that_is_wanted_while_nobody_answers_is_named() -> None:
    wanted = replace(NODE, content=ContentStatus(1, 1, (), 0), peers=(DOWN,))
    (check,) = looked(wanted)
    assert (check.name, check.ok) == ("content", False)
    assert check.detail.startswith("no link to any other node since 2026-09-21 13:13:20+00:00: ld1")
    assert "linnet connect KEY@HOST:PORT" in check.advice
    away = (Unanswered(ANN, NOW - 60, Reason.TIMEOUT),)
    assert [each.ok for each in looked(replace(wanted, peers=(), unanswered=away))] == [False]
    assert looked(replace(wanted, peers=(UP,))) == []
    assert looked(replace(wanted, peers=())) == [], "nobody was ever there: nobody is missing"
    assert looked(replace(wanted, content=ContentStatus(0, 0, (), 0))) == [], "nothing is wanted"


def test_what_others_called_a_room_does_nothing_to_a_terminal() -> None:
    (check,) = looked(with_room(replace(ROOM, name="\x1b]52;c;x\x07evil\r\n"), DOWN))
    assert check.name == "room ]52;c;xevil"


def test_a_host_that_is_let_go_between_two_tries_is_told_with_when_it_was_lost() -> None:
    silent = Unanswered(ANN, NOW - 60, Reason.CONNECTION_REFUSED)
    (check,) = looked(replace(NODE, unanswered=(silent,)), PLACE)
    assert (check.name, check.ok) == ("place café", False)
    assert "since 2026-09-21 14:12:20+00:00: ld1" in check.detail
    assert check.detail.endswith("connection_refused")


def test_a_stream_of_nodes_that_only_dial_is_named_though_the_tracker_answers() -> None:
    stream = replace(STREAM, alone=Reason.UNREACHABLE_INBOUND)
    (check,) = looked(replace(NODE, streams=(stream,), peers=(UP,)), config=TRACKED)
    assert (check.name, check.ok) == ("stream news", False)
    assert "cannot be dialled" in check.detail
    assert "set listen in linnet.toml" in check.advice
