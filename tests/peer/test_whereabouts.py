"""Where devices are, by their own word: which counts, who is told, and that who moved is found."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Blame, Dial, HangUp, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import Asked, DialFailed, LinkDown, LinkUp, Received
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.machine.router import Router
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.peer.interface import Connect
from linnet.peer.whereabouts import (
    FORGOTTEN,
    KEPT,
    LOOKS,
    PROTOCOL,
    RECORDS,
    STRANGERS,
    TURNS,
    AddressBook,
    Company,
    Learned,
    LetGoDue,
    Located,
    LookDue,
    SeekDue,
    Whereabouts,
    check,
    sign,
)
from linnet.places.commands import Announce, Announced, Entered, EnterPlace, HostPlace, PlaceIs
from linnet.places.deed import Policy
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    JoinRoom,
    MakeTicket,
    RoomMade,
    SendToRoom,
    Sent,
    TicketMade,
)
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.event_types import JoinRule
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

from .moving import Moving

NOW = 1_790_000_000.0
TEA, COFFEE = TopicId(b"t" * 32), TopicId(b"c" * 32)


def key_of(name: str) -> SigningKey:
    return SigningKey(name.encode().ljust(32, b"."))


def peer_of(name: str) -> PeerId:
    return PeerId(key_of(name).public)


def word(name: str, number: int = 1, address: str = "") -> Whereabouts:
    return sign(key_of(name), (address or f"tls://{name}:{number}",), number, int(NOW * 1000))


class Scene:
    """A node's book, and with whom it shares what."""

    def __init__(self, listens: Iterable[str] = ("tls://ours:1",)) -> None:
        self.store = MemoryStore()
        self.company: list[Company] = []
        self.account: list[tuple[PeerId, bool]] = []
        self.restart(listens)

    def restart(self, listens: Iterable[str] = ("tls://ours:1",), now: float = NOW) -> list[Effect]:
        told = lambda peer, own, now: self.account.append((peer, own))  # noqa: E731
        self.out = Outbox()
        self.book = AddressBook(
            key_of("ours"), tuple(listens), self.store.cells, self.out, lambda: self.company, told
        )
        self.router = Router(self.out, (self.book,))
        self.book.start(now)
        return self.out.take()

    def share(self, topic: TopicId, *names: str, moved_only: bool = False) -> None:
        self.company.append(Company(topic, tuple(map(peer_of, names)), moved_only=moved_only))

    def up(self, *names: str) -> None:
        for name in names:
            self.link_up(name)

    def link_up(self, name: str, spoken: str = PROTOCOL) -> list[Effect]:
        self.router.input(LinkUp(peer_of(name), Hello(1, 1, {spoken: 1}), True, None), NOW)
        return self.out.take()

    def link_down(self, name: str) -> None:
        self.router.input(LinkDown(peer_of(name), Reason.SHUTDOWN), NOW)

    def fired(self, timer: Timer) -> list[Effect]:
        self.router.timer(timer, NOW)
        return self.out.take()

    def told(self) -> dict[str, list[tuple[TopicId, str, int]]]:
        """What goes out at the next look: by receiver, of which topic, whose, and which number."""
        names = {peer_of(name): name for name in ("ours", "ann", "ben", "cal", "dot")}
        found: dict[str, list[tuple[TopicId, str, int]]] = {}
        for effect in self.fired(LookDue()):
            if isinstance(effect, Send):
                rows = found.setdefault(names[effect.peer], [])
                message = effect.message
                assert isinstance(message, Located)
                rows += [(message.topic, names[each.peer], each.number) for each in message.records]
        return found

    def on_message(self, sender: str, message: Located) -> tuple[list[Effect], list[Notice]]:
        self.book.hear_addresses(peer_of(sender), message, NOW)
        return self.out.take(), self.out.take_notices()

    def hear(self, sender: str, *records: Whereabouts, topic: TopicId = TEA) -> list[Notice]:
        return self.on_message(sender, Located(topic, records))[1]


def test_what_a_device_signed_is_believed_and_nothing_else() -> None:
    record = word("ann", 3)
    check(record)
    changes = {
        "peer": peer_of("ben"),
        "addresses": ("tls://evil:1",),
        "number": 4,
        "at_ms": 1,
        "sig": bytes(64),
    }
    for name, value in changes.items():
        with pytest.raises(RemoteError):
            check(replace(record, **{name: value}))


def test_a_forged_word_is_rejected_and_its_bearer_blamed() -> None:
    scene = Scene()
    scene.share(TEA, "ann", "ben")
    forged = replace(word("ben", 2), addresses=("tls://evil:1",))
    effects, learned = scene.on_message("ann", Located(TEA, (forged,)))
    assert learned == []
    assert effects == [
        Record(Kind.REJECTED, TEA, peer=peer_of("ann"), reason=Reason.BAD_SIGNATURE, note="addresses"),
        Blame(peer_of("ann"), Reason.BAD_SIGNATURE),
    ]
    assert scene.book.located(peer_of("ben"), ("tls://old:1",)) == ("tls://old:1",)


def test_the_own_word_comes_before_what_others_say_and_the_largest_number_counts() -> None:
    scene = Scene()
    scene.share(TEA, "ann", "ben")
    ben = peer_of("ben")
    assert scene.hear("ann", word("ben", 2)) == [Learned(TEA, Contact(ben, ("tls://ben:2",)))]
    assert scene.hear("ann", word("ben", 1)) == []
    assert scene.hear("ann", word("ben", 2)) == []
    assert scene.book.located(ben, ("tls://old:1",)) == ("tls://ben:2", "tls://old:1")
    assert scene.hear("ann", word("ben", 3)) != []
    scene.restart()
    assert scene.book.located(ben, ()) == ("tls://ben:3",)


@given(st.permutations(range(1, 7)))
def test_in_whatever_order_words_come_the_same_one_counts(order: list[int]) -> None:
    scene = Scene()
    scene.share(TEA, "ann", "ben")
    for number in order:
        scene.hear("ann", word("ben", number))
    assert scene.book.located(peer_of("ben"), ()) == ("tls://ben:6",)


def test_no_clock_decides_which_word_counts() -> None:
    scene = Scene()
    scene.share(TEA, "ann")
    years_ahead = sign(key_of("ann"), ("tls://ann:1",), 1, 4_000_000_000_000)
    assert scene.hear("ann", years_ahead) != []
    assert scene.hear("ann", word("ann", 2)) != []
    assert scene.book.located(peer_of("ann"), ()) == ("tls://ann:2",)


def test_our_own_number_grows_when_our_addresses_change_and_only_then() -> None:
    scene = Scene()
    ours = peer_of("ours")
    first = scene.book.heard_of(ours)
    assert first is not None
    assert (first.number, first.addresses) == (1, ("tls://ours:1",))
    scene.restart(now=NOW + 1000)
    assert scene.book.heard_of(ours) == first
    scene.restart(["tls://ours:2"], now=NOW - 10_000_000)
    moved = scene.book.heard_of(ours)
    assert moved is not None
    assert (moved.number, moved.addresses) == (2, ("tls://ours:2",))
    scene.restart([])
    gone = scene.book.heard_of(ours)
    assert gone is not None
    assert (gone.number, gone.addresses) == (3, ())
    assert Scene([]).book.heard_of(ours) is None, "who never listened has nothing to say"


def test_a_device_that_lost_its_memory_finds_a_larger_number() -> None:
    scene = Scene(["tls://ours:9"])
    scene.share(TEA, "ann")
    scene.up("ann")
    scene.told()
    assert scene.hear("ann", sign(key_of("ours"), ("tls://ours:1",), 57, 0)) == []
    own = scene.book.heard_of(peer_of("ours"))
    assert own is not None
    assert (own.number, own.addresses) == (58, ("tls://ours:9",))
    assert scene.told() == {"ann": [(TEA, "ours", 58)]}
    # The other end: whoever hears a smaller number from its owner tells it the larger one.
    scene.hear("ann", word("ann", 7))
    effects, _ = scene.on_message("ann", Located(TEA, (word("ann", 1, "tls://ann:x"),)))
    assert effects == [Send(peer_of("ann"), Located(TEA, (word("ann", 7),)))]


def test_only_those_are_told_who_share_a_topic_with_the_owner() -> None:
    scene = Scene()
    scene.share(TEA, "ann", "ben")
    scene.share(COFFEE, "cal", "ben")
    scene.up("ann", "ben", "cal", "dot")
    scene.hear("ann", word("ann"))
    scene.hear("cal", word("cal"), topic=COFFEE)
    scene.hear("ben", word("ben"))
    told = scene.told()
    assert told == {
        "ann": [(TEA, "ours", 1), (TEA, "ben", 1)],
        "ben": [(TEA, "ours", 1), (TEA, "ann", 1), (COFFEE, "cal", 1)],
        "cal": [(COFFEE, "ours", 1), (COFFEE, "ben", 1)],
    }, "ann and cal share nothing, and dot nothing with anyone"
    assert scene.told() == {}, "once"
    assert sorted(scene.account) == sorted(
        [(peer_of("ann"), True), (peer_of("ben"), True), (peer_of("cal"), True)]
        + [(peer_of("ann"), False)]
        + [(peer_of("ben"), False)] * 2
        + [(peer_of("cal"), False)]
    )


def test_who_was_only_met_before_is_told_of_and_neither_told_nor_believed() -> None:
    scene = Scene()
    scene.company = [Company(TEA, (peer_of("ann"),), (peer_of("ben"),))]
    scene.up("ann", "ben")
    scene.hear("ann", word("ben"))
    assert scene.told() == {"ann": [(TEA, "ours", 1)]}, "from ann we have it: it is not told what it said"
    scene.link_down("ann")
    scene.up("ann")
    assert scene.told() == {"ann": [(TEA, "ours", 1), (TEA, "ben", 1)]}
    assert scene.hear("ben", word("ben", 2)) == []


def test_where_others_name_fresh_addresses_only_who_has_moved_is_told_of() -> None:
    scene = Scene()
    scene.share(TEA, "ann", "ben", "cal", moved_only=True)
    scene.up("ann", "ben", "cal")
    scene.hear("ann", word("ann", 1))
    scene.hear("ben", word("ben", 2))
    assert scene.told() == {
        "ann": [(TEA, "ours", 1), (TEA, "ben", 2)],
        "ben": [(TEA, "ours", 1)],
        "cal": [(TEA, "ours", 1), (TEA, "ben", 2)],
    }
    scene.company = [replace(scene.company[0], unless_moved=False)]
    scene.link_down("cal")
    scene.up("cal")
    assert scene.told() == {"cal": [(TEA, "ben", 2)]}


def test_who_has_moved_turns_to_those_who_do_not_know_it() -> None:
    scene = Scene()
    scene.share(TEA, "ann", "ben")
    scene.up("ann")
    scene.hear("ann", word("ann"))
    scene.hear("ann", word("ben"))
    scene.told()
    assert scene.restart() == [], "it has not moved"
    wanted = [Hold(peer_of("ben"), (), "whereabouts"), Hold(peer_of("ann"), (), "whereabouts")]
    assert scene.restart(["tls://ours:2"]) == [*wanted, SetTimer(60.0, LetGoDue())]
    scene.up("ann")
    assert scene.told() == {"ann": [(TEA, "ours", 2), (TEA, "ben", 1)]}
    (one, other, again) = scene.fired(LetGoDue())
    assert [one, other] == [Release(each.peer, "whereabouts") for each in wanted]
    assert again == SetTimer(540.0, SeekDue())
    assert scene.fired(SeekDue()) == [wanted[0], SetTimer(60.0, LetGoDue())]
    for _ in range(TURNS - 2):
        assert scene.fired(SeekDue()) != []
    assert scene.fired(SeekDue()) == [], "it was tried often enough"
    assert scene.restart(["tls://ours:2"]) == [wanted[0], SetTimer(60.0, LetGoDue())], (
        "at the next start again"
    )


def test_who_does_not_understand_is_told_nothing() -> None:
    scene = Scene()
    scene.share(TEA, "ann")
    assert scene.link_up("ann", "another") == []
    assert scene.fired(LookDue()) == []


def test_a_stranger_to_the_topic_is_not_heard() -> None:
    scene = Scene()
    scene.share(TEA, "ann")
    for sender, topic in (("dot", TEA), ("ann", COFFEE)):
        effects, learned = scene.on_message(sender, Located(topic, (word("ben"),)))
        assert learned == []
        (record,) = effects
        assert isinstance(record, Record)
        assert record.reason is Reason.NOT_IN_TOPIC


def test_it_is_looked_several_times_and_then_no_more() -> None:
    scene = Scene()
    effects = scene.link_up("ann")
    for delay in LOOKS:
        assert effects == [SetTimer(delay, LookDue())]
        effects = scene.fired(LookDue())
    assert effects == []
    scene.share(TEA, "ann")
    assert scene.told() == {}, "until something is new"
    scene.hear("ann", word("ann", 2))
    assert scene.told() == {"ann": [(TEA, "ours", 1)]}
    scene.link_down("ann")
    assert scene.fired(LookDue()) == []


def test_a_message_tells_of_so_many_and_the_rest_at_the_next_look() -> None:
    scene = Scene()
    names = [f"n{number}" for number in range(RECORDS + 5)]
    scene.share(TEA, "ann", *names)
    scene.up("ann")
    for name in names:
        scene.hear("ann", word(name))
    scene.link_down("ann")
    scene.up("ann")
    sizes = [
        len(each.message.records)
        for _ in range(3)
        for each in scene.fired(LookDue())
        if isinstance(each, Send) and isinstance(each.message, Located)
    ]
    assert sizes == [RECORDS, 6]


def test_so_many_devices_are_kept_and_the_oldest_make_way() -> None:
    scene = Scene()
    names = [f"n{number}" for number in range(KEPT + 1)]
    scene.share(TEA, "ann", *names)
    for at in range(0, KEPT, RECORDS):
        scene.hear("ann", *(word(name) for name in names[at : at + RECORDS]))
    assert scene.book.heard_of(peer_of("n0")) is not None
    effects, _ = scene.on_message("ann", Located(TEA, (word(names[-1]),)))
    assert effects[0] == Record(Kind.EVICTED, peer=peer_of("n0"), reason=Reason.TOO_MANY, note="addresses")
    assert scene.book.heard_of(peer_of("n0")) is None
    assert scene.book.heard_of(peer_of("n1")) is not None
    scene.restart()
    assert scene.book.heard_of(peer_of("n0")) is None
    assert scene.book.heard_of(peer_of("n1")) is not None


def test_so_many_who_were_never_met_are_kept_of_one_topic() -> None:
    scene = Scene()
    scene.share(TEA, "ann", "ben")
    scene.hear("ann", word("ben"))
    for number in range(STRANGERS):
        scene.hear("ann", word(f"n{number}"))
    assert scene.book.heard_of(peer_of("n0")) is not None
    effects, _ = scene.on_message("ann", Located(TEA, (word("one more"),)))
    evicted = Record(Kind.EVICTED, peer=peer_of("n0"), reason=Reason.TOO_MANY, note="addresses")
    assert effects[0] == evicted
    assert scene.book.heard_of(peer_of("n0")) is None
    assert scene.book.heard_of(peer_of("n1")) is not None
    assert scene.book.heard_of(peer_of("ben")) is not None, "who was met does not make way"
    scene.company = [Company(TEA, tuple(map(peer_of, ("ann", "ben", "n1"))))]
    scene.hear("ann", word("yet another"))
    assert scene.book.heard_of(peer_of("n1")) is not None, "it was met since"


def test_a_message_of_many_addresses_counts_as_many() -> None:
    moving = Moving()
    room = room_of(moving, "ann", "ben", relay=False)
    ann, ben = moving.network.machine(moving.peer("ann")), moving.peer("ben")
    records = tuple(word(f"n{number}") for number in range(RECORDS))
    now = moving.network.now
    allowed = int(LinkConfig().control_rate * 10 / RECORDS)
    for _ in range(allowed):
        effects = ann.handle(Received(ben, Located(room, records)), now)
        assert not any(isinstance(each, HangUp) for each in effects)
    ends = [ann.handle(Received(ben, Located(room, records)), now) for _ in range(2)]
    assert HangUp(ben, Reason.FLOODING) in ends[-1]


def test_what_was_heard_long_ago_is_forgotten() -> None:
    scene = Scene()
    scene.share(TEA, "ann")
    scene.hear("ann", word("ann"))
    scene.restart(now=NOW + FORGOTTEN - 1)
    assert scene.book.heard_of(peer_of("ann")) is not None
    scene.restart(now=NOW + FORGOTTEN)
    assert scene.book.heard_of(peer_of("ann")) is None


# Whole nodes, on a network where an address that is no more is no use.


def room_of(moving: Moving, *names: str, relay: bool) -> TopicId:
    moving.add("relay", PeerConfig(relay=RelayConfig(policy=RelayPolicy.OPEN)))
    for name in names:
        moving.add(name, PeerConfig())
    first, *others = names
    room = moving.get(first, CreateRoom("tea", rule=JoinRule.PUBLIC), RoomMade).room
    if relay:
        moving.get(first, AddRelay(room, moving.contact("relay")), Sent)
    for name in others:
        expires = int((moving.network.now + 3600) * 1000)
        made = moving.get(first, MakeTicket(room, expires), TicketMade)
        moving.get(name, JoinRoom(room, made.ticket, made.contacts), RoomMade)
    moving.run(5.0)
    return room


def test_two_who_moved_find_each_other_by_their_relay() -> None:
    moving = Moving()
    room_of(moving, "ann", "ben", relay=True)
    assert moving.linked("ann") == {"ben", "relay"}
    moving.stop("ann", "ben")
    moving.run(5.0)
    moving.start("ann", "ben", port=2)
    moving.run(15.0)
    assert moving.linked("ann") == {"ben", "relay"}


def test_members_who_never_met_find_each_other_by_their_relay() -> None:
    moving = Moving()
    room = room_of(moving, "ann", relay=True)
    moving.stop("ann")
    moving.add("ben", PeerConfig())
    moving.run(1.0)
    moving.get("ben", JoinRoom(room, None, (moving.contact("relay"),)), RoomMade)
    moving.run(60.0)
    moving.start("ann", port=2)
    moving.run(15.0)
    assert moving.linked("ann") == {"ben", "relay"}


def test_those_who_moved_find_each_other_by_a_member_who_did_not() -> None:
    moving = Moving()
    room = room_of(moving, "ann", "ben", "cal", relay=False)
    moving.stop("ann", "ben")
    moving.run(5.0)
    moving.start("ann", "ben", port=2)
    moving.run(20.0)
    assert moving.linked("ann") == {"ben", "cal"}
    moving.get("ann", SendToRoom(room, (b"x",)), Sent)


def test_two_who_moved_find_each_other_by_a_tracker_which_is_not_told_before() -> None:
    moving = Moving()
    moving.add("tracker", PeerConfig(is_tracker=True))
    known = PeerConfig(trackers=(moving.contact("tracker"),))
    for name in ("ann", "ben"):
        moving.add(name, known)
    room = moving.get("ann", CreateRoom("tea", rule=JoinRule.PUBLIC), RoomMade).room
    moving.get("ben", JoinRoom(room, None, (moving.contact("ann"),)), RoomMade)
    moving.run(300.0)
    assert moving.linked("ann") == {"ben"}
    assert moving.status("tracker").tracked == (), "a small room is not told to trackers"
    moving.stop("ann", "ben")
    moving.run(5.0)
    moving.start("ann", "ben", port=2)
    moving.run(180.0)
    assert "ben" in moving.linked("ann")
    moving.get("ann", SendToRoom(room, (b"x",)), Sent)


def test_a_relay_that_moved_is_found_by_whoever_it_finds() -> None:
    moving = Moving()
    room_of(moving, "ann", "ben", "cal", relay=True)
    moving.stop("relay", "ben")
    moving.run(5.0)
    moving.start("relay", port=2)
    moving.run(60.0)
    moving.start("ben")
    moving.run(60.0)
    assert "relay" in moving.linked("ben")


def test_a_host_who_moved_is_found_by_its_guests() -> None:
    moving = Moving()
    for name in ("host", "ann", "ben"):
        moving.add(name, PeerConfig())
    place = moving.get("host", HostPlace(policy=Policy.PUBLIC), PlaceIs).deed.place
    moving.get("host", Announce(place, "_notice_place_open"), Announced)
    for name in ("ann", "ben"):
        moving.get(name, EnterPlace(place, (moving.contact("host"),)), Entered)
    moving.run(10.0)
    moving.stop("host")
    moving.run(30.0)
    moving.start("host", port=2)
    moving.run(90.0)
    assert {"ann", "ben"} <= moving.linked("host")


def dials(effects: Iterable[object]) -> list[Dial]:
    """Whom a node dials, once that is written down."""
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    return [each for each in promised if isinstance(each, Dial)]


def test_whoever_is_wanted_is_dialled_at_once_where_it_was_heard_to_be() -> None:
    moving = Moving()
    for name in ("host", "ann"):
        moving.add(name, PeerConfig())
    place = moving.get("host", HostPlace(policy=Policy.PUBLIC), PlaceIs).deed.place
    moving.get("host", Announce(place, "_notice_place_open"), Announced)
    moving.get("ann", EnterPlace(place, (moving.contact("host"),)), Entered)
    moving.run(10.0)
    ann, now = moving.network.machine(moving.peer("ann")), moving.network.now
    cal, old = peer_of("cal"), ("tls://old:1",)
    assert dials(ann.handle(Asked(7, Connect(Contact(cal, old))), now)) == [Dial(cal, old, is_ours=True)]
    assert dials(ann.handle(DialFailed(cal, Reason.DIAL_TIMEOUT), now)) == []
    told = ann.handle(Received(moving.peer("host"), Located(place, (word("cal", 2),))), now)
    assert dials(told) == [Dial(cal, ("tls://cal:2", *old), is_ours=True)]


def test_whoever_shares_nothing_learns_nothing() -> None:
    moving = Moving()
    room_of(moving, "ann", "ben", relay=True)
    moving.add("eve", PeerConfig())
    moving.network.ask(moving.peer("eve"), _connect(moving, "relay"))
    moving.network.ask(moving.peer("eve"), _connect(moving, "ann"))
    moving.run(120.0)
    assert moving.linked("eve") >= {"relay", "ann"}
    eve = moving.network.machine(moving.peer("eve"))
    assert eve._parts.whereabouts._heard == {}  # type: ignore[attr-defined]


def _connect(moving: Moving, name: str) -> Connect:
    return Connect(moving.contact(name))
