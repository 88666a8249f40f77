"""The serving side: whom it serves, what it promises, what it lets go."""

from __future__ import annotations

import pytest
from tests.edge.stands import AUTHOR, DEVICE, Stands, told, topic

from linnet.core.effects import AfterCommit, Send, SetTimer
from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry
from linnet.delivery.messages import ChainPlace
from linnet.edge import proxy as proxy_module
from linnet.edge.config import ProxyConfig
from linnet.edge.messages import Answer, Serve, Served, Taken, Unserve, Wanted
from linnet.edge.notices import Keep, LetGo, Reached, Trim
from linnet.edge.proxy import Proxy, ReviewDue
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.overlay.notices import NeighborDown
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
TEA = topic("tea")
DAY = 86_400.0
MONTH = 30 * DAY
BYTES = 64 * 2**20
REVIEW = SetTimer(60.0, ReviewDue())
KEEP = Keep(TEA, "tea", MONTH, BYTES)


def topic_of(name: str) -> TopicId:
    if name == "bad":
        raise BadText("no name")
    return topic(name)


class House:
    """A proxy and what its streams stand at."""

    def __init__(self, config: ProxyConfig | None = None, **last: int) -> None:
        self.config = config or ProxyConfig(open=True)
        self.store = MemoryStore()
        self.stands = Stands(**last)
        self.restart()

    def restart(self) -> None:
        self.out = Outbox()
        self.proxy = Proxy(self.config, self.store, self.stands, topic_of, self.out)

    def serve(self, peer: PeerId, request: int, *names: str, now: float = 0.0) -> list[Effect | Notice]:
        self.proxy.handle_serve(peer, Serve(request, self.wanted(*names)), now)
        return told(self.out)

    def unserve(self, peer: PeerId, name: str, keep: bool, now: float) -> list[Effect | Notice]:
        self.proxy.handle_unserve(peer, Unserve(name, keep), now)
        return told(self.out)

    def taken(self, peer: PeerId, message: Taken) -> list[Effect | Notice]:
        self.proxy.handle_taken(peer, message)
        return told(self.out)

    def lose_link(self, peer: PeerId, now: float) -> list[Effect | Notice]:
        self.proxy.handle_link_down(peer, now)
        return told(self.out)

    def review(self, now: float) -> list[Effect | Notice]:
        self.proxy.review_kept(now)
        return told(self.out)

    def wanted(self, *names: str) -> tuple[Wanted, ...]:
        known = Stands(**dict.fromkeys(names, 4))
        return tuple(Wanted(name, known.digest(topic(name)) or b"") for name in names)


def test_a_stream_is_kept_when_it_is_promised_and_the_promise_waits_until_it_is_written() -> None:
    house = House()
    assert house.serve(A, 7, "tea") == [
        Record(Kind.CONTROL, TEA, peer=A, note="served"),
        AfterCommit((Send(A, Served(7, (Answer(None, False),), 0, BYTES, int(MONTH))),)),
        REVIEW,
        KEEP,
        Reached(TEA, A, False),
    ]


def test_who_knows_the_same_is_told_so_in_one_message() -> None:
    house = House(tea=4)
    house.serve(A, 1, "tea")
    house.lose_link(A, 10.0)
    assert house.serve(A, 2, "tea", now=20.0) == [
        Send(A, Served(2, (Answer(None, True),), 0, BYTES, int(MONTH))),
        Reached(TEA, A, True),
    ]


def test_a_second_client_shares_what_is_kept() -> None:
    house = House(tea=4)
    house.serve(A, 1, "tea")
    assert Keep in map(type, House().serve(B, 1, "tea"))
    assert Keep not in map(type, house.serve(B, 1, "tea"))


@pytest.mark.parametrize(
    ("config", "names", "reasons"),
    [
        (ProxyConfig(), ("tea",), [Reason.NOT_ALLOWED]),
        (ProxyConfig(allow=(B,)), ("tea",), [Reason.NOT_ALLOWED]),
        (ProxyConfig(allow=(A,)), ("tea",), [None]),
        (ProxyConfig(open=True), ("bad", "me/diary", "tea"), [Reason.MALFORMED, Reason.MALFORMED, None]),
        (ProxyConfig(open=True, topics=2), ("a", "b", "c", "a"), [None, None, Reason.TOO_MANY, None]),
    ],
)
def test_what_is_refused_has_a_reason_and_a_record(
    config: ProxyConfig, names: tuple[str, ...], reasons: list[Reason | None]
) -> None:
    house = House(config)
    effects = house.serve(A, 1, *names)
    sends = [effect.effects[0] if isinstance(effect, AfterCommit) else effect for effect in effects]
    served = next(effect.message for effect in sends if isinstance(effect, Send))
    assert isinstance(served, Served)
    assert [answer.refusal for answer in served.answers] == reasons
    rejected = [each.reason for each in effects if isinstance(each, Record) and each.kind is Kind.REJECTED]
    assert rejected == [reason for reason in reasons if reason is not None]


def test_there_is_a_limit_to_clients() -> None:
    house = House(ProxyConfig(open=True, clients=1))
    house.serve(A, 1, "tea")
    refused = Served(1, (Answer(Reason.TOO_MANY, False),), 0, BYTES, int(MONTH))
    assert Send(B, refused) in house.serve(B, 1, "tea")


def test_a_restart_goes_on_with_what_was_served() -> None:
    house = House()
    house.serve(A, 1, "tea", "rain")
    house.restart()
    house.proxy.start()
    assert told(house.out) == [REVIEW, Keep(topic("rain"), "rain", MONTH, BYTES), KEEP]
    assert [(client.peer, client.up, client.streams) for client in house.proxy.status()] == [
        (A, False, ("rain", "tea"))
    ]


def test_a_pause_ends_what_is_sent_but_not_what_is_kept() -> None:
    house = House()
    house.serve(A, 1, "tea")
    assert house.unserve(A, "tea", True, 10.0) == [NeighborDown(TEA, A)]
    assert house.unserve(A, "tea", True, 10.0) == []
    house.review(MONTH - 1.0)
    assert house.proxy.status()[0].streams == ("tea",)


def test_what_nobody_wants_is_kept_for_its_time_and_then_let_go() -> None:
    house = House()
    house.serve(A, 1, "tea")
    assert house.unserve(A, "tea", False, 10.0) == [NeighborDown(TEA, A)]
    assert house.proxy.status() == ()
    assert house.review(9.0 + MONTH) == [REVIEW]
    house.restart()
    house.proxy.start()
    told(house.out)
    assert house.review(10.0 + MONTH) == [
        Record(Kind.CONTROL, TEA, reason=Reason.RETENTION, note="nobody is served it any more"),
        LetGo(TEA, "tea"),
    ]


def test_who_does_not_come_back_is_forgotten_with_a_record() -> None:
    house = House()
    house.serve(A, 1, "tea")
    assert house.review(2 * MONTH) == [REVIEW]  # the link is open all the time
    assert house.lose_link(A, 2 * MONTH) == [NeighborDown(TEA, A)]
    assert house.review(3 * MONTH - 1.0) == [REVIEW]
    expired = Record(Kind.EXPIRED, TEA, peer=A, reason=Reason.RETENTION, note="the client did not come back")
    assert house.review(3 * MONTH) == [expired, REVIEW]
    assert house.proxy.status() == ()


def fill(house: House, name: str, count: int, at: float) -> None:
    for number in range(count):
        head = EventId(name.encode()[:1] * 31 + bytes([number]))
        house.store.log.append(Entry(topic(name), AUTHOR, DEVICE, number, 1, head, at + number, bytes(100)))


def test_over_the_quota_the_oldest_goes_first_of_what_the_client_has_taken() -> None:
    house = House(ProxyConfig(open=True, bytes=500))
    house.serve(A, 1, "tea", "rain")
    fill(house, "tea", 4, at=100.0)
    fill(house, "rain", 4, at=200.0)
    place = ChainPlace(AUTHOR, DEVICE, 0, 1, False)
    assert house.taken(A, Taken(topic("rain"), (place,))) == []
    trims = [effect for effect in house.review(300.0) if isinstance(effect, Trim)]
    assert trims == [Trim(TEA, 300), Trim(topic("rain"), 200)]
    assert house.proxy.status()[0].kept_bytes == 800


def test_who_takes_what_is_not_served_is_not_believed() -> None:
    house = House()
    rejected = Record(Kind.REJECTED, TEA, peer=A, reason=Reason.NOT_JOINED, note="taken")
    assert house.taken(A, Taken(TEA, ())) == [rejected]


def test_streams_that_nobody_wants_any_more_make_room_for_each_other() -> None:
    """Whoever asks for ever new streams and gives them up at once would fill the disk of a proxy."""
    house = House(ProxyConfig(open=True, clients=4, topics=2))
    for number, peer in enumerate((A, A, A, B)):
        house.serve(peer, number, f"s{number}", now=float(number))
        assert not notices(house.unserve(peer, f"s{number}", False, float(number)), LetGo)
    house.serve(A, 9, "s9", now=9.0)
    said = house.unserve(A, "s9", False, 9.0)
    assert notices(said, LetGo) == [LetGo(topic("s0"), "s0")], "the oldest of the client with most"
    reasons = [each.reason for each in said if isinstance(each, Record) and each.kind is Kind.CONTROL]
    assert reasons == [Reason.TOO_MANY]
    house.restart()
    house.serve(B, 10, "s10", now=10.0)
    assert notices(house.unserve(B, "s10", False, 10.0), LetGo) == [LetGo(topic("s1"), "s1")]
    assert len(house.proxy._book.ending) == 4
    for number in range(20, 30):
        stranger = PeerId(bytes([number]) * 32)
        house.serve(stranger, number, f"s{number}", now=float(number))
        assert len(notices(house.unserve(stranger, f"s{number}", False, float(number)), LetGo)) == 1
    assert len(house.proxy._book.ending) == 4


def test_a_clients_word_is_remembered_for_so_many_chains_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "LARGEST_TAKEN", 5)
    house = House()
    house.serve(A, 1, "tea", "rain")
    places = tuple(ChainPlace(AuthorId(bytes([n]) * 32), DeviceId(bytes(8)), 0, n, False) for n in range(4))
    for name in ("tea", "rain"):
        assert house.taken(A, Taken(topic(name), places)) == []
    assert [len(each) for each in house.proxy._taken[A].values()] == [4, 1]


def notices(said: list[Effect | Notice], kind: type[Notice]) -> list[Notice]:
    return [each for each in said if isinstance(each, kind)]
