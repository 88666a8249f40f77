"""The face over a real socket, with a relay behind it that is a list."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from tests.node.standin_relay import (
    EPOCH,
    NOWHERE,
    RELAY,
    RELAY_IDENTITY,
    ROOM,
    StandInRelay,
    id_of,
    room_unit,
)

from linnet.core.errors import Refused
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.event.signing import encode_unit
from linnet.identity.addresses import HttpAddress
from linnet.identity.text import Sort, to_text
from linnet.node.relay_admission import RelayHttpLimits
from linnet.node.relay_http import Ask, RelayHttp, serve_relay
from linnet.node.relay_http_client import RelayDeclined, RelayHttpClient
from linnet.node.relay_protocol import PREFIX, RelayErrorReply, Status
from linnet.node.relay_signing import SignedRequest, authorization
from linnet.peer.config import Identity
from linnet.rooms.commands import AskRelay, RelayReplies
from linnet.rooms.messages import RelayForward, RelaySend, Tombstone
from linnet.sim.clock import START
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

ANN, BEN, EVE, OTHER = (known_identity(name) for name in ("ann", "ben", "eve", "other relay"))
ROOM_PATH = f"{PREFIX}/{to_text(Sort.TOPIC, ROOM)}"


class Served:
    """A face, its clock and its trace."""

    def __init__(self, ask: Ask, limits: RelayHttpLimits | None = None) -> None:
        self.now = START
        self.records: list[Record] = []
        self.noted = asyncio.Event()
        self.face = RelayHttp(ask, RELAY_IDENTITY, self.clock, self.note, limits)
        self.stack = AsyncExitStack()
        self._nonces = 0

    def clock(self) -> float:
        return self.now

    def note(self, record: Record) -> None:
        self.records.append(record)
        self.noted.set()

    async def open(self) -> None:
        server = serve_relay(self.face.app(), HttpAddress("127.0.0.1", 0, False), RELAY.device)
        self.url = await self.stack.enter_async_context(server)
        self.http = await self.stack.enter_async_context(
            httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=20)
        )

    async def client(self, identity: Identity) -> RelayHttpClient:
        client = RelayHttpClient(self.url, RELAY.peer, identity, self.clock)
        return await self.stack.enter_async_context(client)

    def headers(self, verb: str, path: str, content: bytes, **changed: Any) -> dict[str, str]:  # noqa: ANN401
        """A good signature of Ann's, but for what is changed."""
        self._nonces += 1
        said: dict[str, Any] = {
            "relay": RELAY.peer,
            "method": verb,
            "target": path.encode(),
            "body": content,
        }
        parts: dict[str, Any] = {
            "key": ANN.device,
            "card": ANN.card,
            "ts": int(self.now * 1000),
            "nonce": self._nonces.to_bytes(16, "big"),
        }
        request = SignedRequest(**{name: changed.pop(name, value) for name, value in said.items()})
        header = authorization(request=request, **(parts | changed))
        return {"authorization": header, "content-type": "application/json"}

    async def post(self, call: str = "resync", sent: bytes = b"{}", **changed: Any) -> httpx.Response:  # noqa: ANN401
        path = f"{ROOM_PATH}/{call}"
        return await self.http.post(path, content=sent, headers=self.headers("POST", path, sent, **changed))


@asynccontextmanager
async def serving(ask: Ask, limits: RelayHttpLimits | None = None) -> AsyncIterator[Served]:
    served = Served(ask, limits)
    async with served.stack:
        await served.open()
        yield served


@pytest.fixture
def relay() -> StandInRelay:
    return StandInRelay(ANN, BEN, relays=(OTHER,))


@pytest.fixture
async def served(relay: StandInRelay) -> AsyncIterator[Served]:
    async with serving(relay) as each:
        yield each


def told(response: httpx.Response) -> tuple[int, str]:
    reply = msgspec.json.decode(response.content, type=RelayErrorReply)
    assert reply.detail
    assert reply.hint
    return response.status_code, reply.error


async def declined(work: Any) -> tuple[int, str]:  # noqa: ANN401
    with pytest.raises(RelayDeclined) as caught:
        await work
    return caught.value.status, caught.value.reply.error


async def test_what_one_sends_the_other_reads_later(served: Served, relay: StandInRelay) -> None:
    ann, ben = await served.client(ANN), await served.client(BEN)
    units = [room_unit(ANN, number, str(number).encode()) for number in range(5)]
    reply = await ann.send(ROOM, units, [ANN.card])
    assert [result.status for result in reply.results] == [Status.ACCEPTED] * 5
    first = await ben.resync(ROOM, None, 3)
    assert first.events == tuple(map(encode_unit, units[:3]))
    assert first.cards == (msgspec.msgpack.encode(ANN.card),)
    assert (first.limited, first.epoch) == (True, EPOCH.hex())
    second = await ben.resync(ROOM, first.next_cursor, 3)
    assert (second.events, second.limited) == (tuple(map(encode_unit, units[3:])), False)
    assert second.control_heads == (to_text(Sort.EVENT, NOWHERE),)
    assert (await ben.resync(ROOM, second.next_cursor)).events == ()
    # The machine was asked for the device that signed, and its person.
    assert {(each.peer, each.person) for each in relay.asked} == {
        (ANN.peer, ANN.author),
        (BEN.peer, BEN.author),
    }
    assert served.records == []


async def test_one_bad_event_fails_no_other(served: Served) -> None:
    ann = await served.client(ANN)
    bodies = (b"one", b"refuse", b"lack", b"soft")
    units = [room_unit(ANN, number, body) for number, body in enumerate(bodies)]
    reply = await ann.send(ROOM, units)
    assert [(result.status, result.error) for result in reply.results] == [
        (Status.ACCEPTED, None),
        (Status.REJECTED, "no_power"),
        (Status.MISSING, "missing_dependency"),
        (Status.ACCEPTED, "soft_failed"),
    ]
    assert reply.results[2].missing == (to_text(Sort.EVENT, NOWHERE),)
    again = await ann.send(ROOM, units[:1])
    assert (again.results[0].status, again.results[0].cursor) == (Status.DUPLICATE, reply.results[0].cursor)


async def test_what_is_no_event_fails_no_other(served: Served, relay: StandInRelay) -> None:
    good = [base64.b64encode(encode_unit(room_unit(ANN, number, b"%d" % number))) for number in range(2)]
    path = f"{ROOM_PATH}/send/1"
    body = msgspec.json.encode({"events": (good[0].decode(), "?", good[1].decode())})
    response = await served.http.put(path, content=body, headers=served.headers("PUT", path, body))
    results = response.json()["results"]
    assert [result["status"] for result in results] == ["accepted", "rejected", "accepted"]
    assert (results[1]["event"], results[1]["error"]) == (None, "malformed")
    assert len(relay.asked) == 1


async def test_a_batch_of_nothing_readable_asks_the_machine_nothing(
    served: Served, relay: StandInRelay
) -> None:
    path, body = f"{ROOM_PATH}/send/1", b'{"events":["?"]}'
    response = await served.http.put(path, content=body, headers=served.headers("PUT", path, body))
    assert response.json() == {"results": [{"event": None, "status": "rejected", "error": "malformed"}]}
    assert relay.asked == []


async def test_a_transaction_is_answered_alike_and_done_once(served: Served, relay: StandInRelay) -> None:
    ann, ben = await served.client(ANN), await served.client(BEN)
    units = [room_unit(ANN, 0, b"one")]
    first = await ann.send(ROOM, units, txn="t.1")
    assert await ann.send(ROOM, units, txn="t.1") == first
    assert len(relay.asked) == 1
    other = [room_unit(ANN, 1, b"two")]
    assert await declined(ann.send(ROOM, other, txn="t.1")) == (409, "in_use")
    # Names are a device's own.
    assert (await ben.send(ROOM, units, txn="t.1")).results[0].status is Status.DUPLICATE


async def test_only_relays_forward(served: Served, relay: StandInRelay) -> None:
    ann, other = await served.client(ANN), await served.client(OTHER)
    units = [room_unit(ANN, 0, b"one")]
    assert await declined(ann.forward(ROOM, units)) == (403, "not_a_relay")
    assert (await other.forward(ROOM, units)).results[0].status is Status.ACCEPTED
    assert [type(each.message) for each in relay.asked] == [RelayForward, RelayForward]
    await ann.send(ROOM, units)
    assert type(relay.asked[-1].message) is RelaySend


async def test_events_by_id(served: Served) -> None:
    ann = await served.client(ANN)
    unit = room_unit(ANN, 0, b"one")
    await ann.send(ROOM, [unit], [ANN.card])
    reply = await ann.get(ROOM, [id_of(unit), EventId(b"x" * 32)])
    assert reply.events == (encode_unit(unit),)
    assert (reply.unknown, reply.reason) == ((to_text(Sort.EVENT, b"x" * 32),), "not_held")
    assert await declined(ann.get(ROOM, [NOWHERE] * 101)) == (400, "malformed")


async def test_the_control_dag(served: Served) -> None:
    ann = await served.client(ANN)
    await ann.send(ROOM, [room_unit(ANN, number, b"x") for number in range(3)])
    reply = await ann.authdag(ROOM, [NOWHERE], 2)
    assert (len(reply.events), reply.more) == (2, True)


async def test_strangers_and_other_rooms(served: Served) -> None:
    eve, ann = await served.client(EVE), await served.client(ANN)
    for work in (
        eve.resync(ROOM, None),
        eve.get(ROOM, [NOWHERE]),
        eve.authdag(ROOM),
        eve.send(ROOM, [room_unit(EVE, 0, b"x")]),
    ):
        assert await declined(work) == (403, "not_a_member")
    assert await declined(ann.resync(TopicId(bytes(32)), None)) == (404, "unknown_room")


async def test_an_expired_cursor_says_where_to_go_on(served: Served, relay: StandInRelay) -> None:
    ann = await served.client(ANN)
    await ann.send(ROOM, [room_unit(ANN, number, b"x") for number in range(3)])
    cursor = (await ann.resync(ROOM, None, 1)).next_cursor
    relay.oldest = 2
    relay.tombstones = (Tombstone(NOWHERE, Reason.RETENTION),)
    with pytest.raises(RelayDeclined) as caught:
        await ann.resync(ROOM, cursor)
    assert (caught.value.status, caught.value.reply.error) == (410, "cursor_expired")
    assert caught.value.reply.oldest_cursor == f"{EPOCH.hex()}.2"
    page = await ann.resync(ROOM, caught.value.reply.oldest_cursor)
    assert len(page.events) == 1
    assert [(each.event, each.reason) for each in page.tombstones] == [
        (to_text(Sort.EVENT, NOWHERE), "retention")
    ]


async def test_anyone_may_know_who_the_relay_is(served: Served) -> None:
    response = await served.http.get(f"{PREFIX}/info")
    info = response.json()
    assert info["device"] == to_text(Sort.DEVICE, RELAY.peer)
    assert (info["versions"], info["rooms"], info["retention_ms"]) == (["v1"], 1, 3_600_000)
    assert info["clock_ms"] == int(START * 1000)
    assert info["limits"]["events_per_send"] == 50
    assert (await served.http.get(f"{PREFIX}/openapi.json")).json()["openapi"] == "3.1.0"


async def test_signatures_that_are_not_good_are_named(served: Served, relay: StandInRelay) -> None:
    ago, ahead = int((START - 301) * 1000), int((START + 301) * 1000)
    old = known_identity("old", START - 10**9)
    cases: list[tuple[dict[str, Any], tuple[int, str]]] = [
        ({"relay": ANN.peer}, (401, "bad_signature")),
        ({"body": b"{} "}, (401, "bad_signature")),
        ({"method": "PUT"}, (401, "bad_signature")),
        ({"target": b"/other"}, (401, "bad_signature")),
        ({"key": BEN.device}, (401, "wrong_key")),
        ({"card": msgspec.structs.replace(ANN.card, label="x")}, (401, "bad_signature")),
        ({"key": old.device, "card": old.card}, (401, "card_expired")),
        ({"ts": ago}, (401, "stale")),
        ({"ts": ahead}, (401, "future_time")),
    ]
    for changed, expected in cases:
        response = await served.post(**changed)
        assert told(response) == expected, changed
        assert response.headers["www-authenticate"] == "Linnet-Sig"
    assert relay.asked == []
    # Each refusal is in the trace with its reason, and nothing else of the request is.
    assert [record.kind for record in served.records] == [Kind.REJECTED] * len(cases)
    assert [str(record.reason) for record in served.records] == [error for _, (_, error) in cases]


async def test_requests_that_are_not_signed(served: Served) -> None:
    path = f"{ROOM_PATH}/resync"
    assert told(await served.http.post(path, json={})) == (401, "auth_failed")
    response = await served.http.post(path, json={}, headers={"authorization": "Linnet-Sig x"})
    assert told(response) == (400, "malformed")
    twice = [("authorization", "Linnet-Sig a"), ("authorization", "Linnet-Sig b")]
    assert told(await served.http.post(path, json={}, headers=twice)) == (400, "malformed")


async def test_a_request_is_good_once(served: Served, relay: StandInRelay) -> None:
    path = f"{ROOM_PATH}/resync"
    headers = served.headers("POST", path, b"{}")
    assert (await served.http.post(path, content=b"{}", headers=headers)).status_code == 200
    assert told(await served.http.post(path, content=b"{}", headers=headers)) == (401, "repeated_nonce")
    # Until the end of its window; then it is stale, and stays so.
    for passed, error in (
        (299.0, "repeated_nonce"),
        (300.0, "repeated_nonce"),
        (300.5, "stale"),
        (900.0, "stale"),
    ):
        served.now = START + passed
        assert told(await served.http.post(path, content=b"{}", headers=headers)) == (401, error)
    assert len(relay.asked) == 1


async def test_nothing_from_before_a_restart_is_taken(served: Served, relay: StandInRelay) -> None:
    path = f"{ROOM_PATH}/resync"
    headers = served.headers("POST", path, b"{}")
    assert (await served.http.post(path, content=b"{}", headers=headers)).status_code == 200
    again = Served(relay)
    again.now = START + 1.0
    again.face = RelayHttp(relay, RELAY_IDENTITY, again.clock)
    async with again.stack:
        await again.open()
        assert told(await again.http.post(path, content=b"{}", headers=headers)) == (401, "stale")


async def test_a_device_has_a_budget(relay: StandInRelay) -> None:
    async with serving(relay, RelayHttpLimits(device_rate=0.5, device_burst=2)) as served:
        ann, ben = await served.client(ANN), await served.client(BEN)
        await ann.resync(ROOM, None)
        await ann.resync(ROOM, None)
        with pytest.raises(RelayDeclined) as caught:
            await ann.resync(ROOM, None)
        assert (caught.value.status, caught.value.reply.error) == (429, "too_many")
        assert caught.value.retry_after == 2
        await ben.resync(ROOM, None)
        served.now += 2.0
        await ann.resync(ROOM, None)


async def test_a_repeated_request_costs_its_device_nothing(relay: StandInRelay) -> None:
    async with serving(relay, RelayHttpLimits(device_rate=0.01, device_burst=2)) as served:
        path = f"{ROOM_PATH}/resync"
        headers = served.headers("POST", path, b"{}")
        codes = [(await served.http.post(path, content=b"{}", headers=headers)).status_code for _ in range(5)]
        assert codes == [200, 401, 401, 401, 401]
        assert (await served.post()).status_code == 200


async def test_a_full_memory_of_nonces_is_told(relay: StandInRelay) -> None:
    async with serving(relay, RelayHttpLimits(nonces=1)) as served:
        assert (await served.post()).status_code == 200
        response = await served.post()
        assert told(response) == (503, "congested")
        assert response.headers["retry-after"] == "301"
        served.now += 302.0
        assert (await served.post()).status_code == 200


async def test_a_large_body_is_refused(relay: StandInRelay) -> None:
    async with serving(relay, RelayHttpLimits(request_bytes=1000)) as served:
        assert told(await served.post(sent=b" " * 1001)) == (413, "too_large")
        assert (await served.post(sent=b"{}" + b" " * 998)).status_code == 200


async def test_a_body_that_does_not_come_is_not_waited_for(relay: StandInRelay) -> None:
    async with serving(relay, RelayHttpLimits(read_seconds=0.05)) as served:
        path = f"{ROOM_PATH}/resync"
        release = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield b"{"
            await release.wait()

        async with asyncio.TaskGroup() as group:
            work = group.create_task(
                served.http.post(path, content=slow(), headers=served.headers("POST", path, b"{}"))
            )
            await served.noted.wait()
            release.set()
        assert told(work.result()) == (408, "timeout")


async def test_no_more_are_served_at_once_than_allowed() -> None:
    release, begun = asyncio.Event(), asyncio.Event()
    relay = StandInRelay(ANN)

    async def slow(question: AskRelay) -> RelayReplies:
        begun.set()
        await release.wait()
        return await relay(question)

    async with serving(slow, RelayHttpLimits(in_flight=1)) as served, asyncio.TaskGroup() as group:
        first = group.create_task(served.post())
        await begun.wait()
        response = await served.post()
        assert told(response) == (503, "congested")
        assert response.headers["retry-after"] == "1"
        release.set()
        assert (await first).status_code == 200
        assert (await served.post()).status_code == 200


async def test_a_relay_that_does_not_answer_or_declines() -> None:
    async def never(question: AskRelay) -> RelayReplies:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(never, RelayHttpLimits(answer_seconds=0.02)) as served:
        assert told(await served.post()) == (503, "timeout")

    async def declines(question: AskRelay) -> RelayReplies:
        raise Refused(Reason.BLOCKED, "blocked here")

    async with serving(declines) as served:
        assert (await served.post()).json()["error"] == "blocked"

    async def breaks(question: AskRelay) -> RelayReplies:
        raise KeyError("a secret")

    async with serving(breaks) as served:
        response = await served.post()
        assert (response.status_code, response.json()["error"]) == (500, "bug")
        assert "secret" not in response.text
        assert served.records[-1].note == "relay http: 500 KeyError"

    async def silent(question: AskRelay) -> RelayReplies:
        return RelayReplies(())

    async with serving(silent) as served:
        assert (await served.post()).status_code == 500


NONSENSE = [
    (b"", "resync"),
    (b"[]", "resync"),
    (b'{"limit":0}', "resync"),
    (b'{"more":1}', "resync"),
    (b'{"cursor":"x"}', "resync"),
    (b'{"ids":[]}', "get"),
    (b'{"ids":["le1x"]}', "get"),
    (b'{"heads":["lt1x"]}', "authdag"),
    (b'{"ticket":"AAAA"}', "authdag"),
    (b"[" * 10_000, "resync"),
    (b"{}", "resync?x=1"),
]


async def test_what_means_nothing_is_named(served: Served, relay: StandInRelay) -> None:
    for body, call in NONSENSE:
        assert told(await served.post(call, body)) == (400, "malformed"), body
    assert relay.asked == []


async def test_wrong_paths_methods_and_forms(served: Served) -> None:
    assert told(await served.http.get("/")) == (404, "not_found")
    assert told(await served.http.get(f"{PREFIX}/info/")) == (404, "not_found")
    assert told(await served.http.get(f"{ROOM_PATH}/resync")) == (405, "method_not_allowed")
    path = f"{PREFIX}/lt1x/resync"
    response = await served.http.post(path, content=b"{}", headers=served.headers("POST", path, b"{}"))
    assert (response.status_code, response.json()["error"]) == (400, "malformed")
    path = f"{ROOM_PATH}/send/a%20b"
    body = b'{"events":["' + base64.b64encode(encode_unit(room_unit(ANN, 0, b"x"))) + b'"]}'
    response = await served.http.put(path, content=body, headers=served.headers("PUT", path, body))
    assert (response.status_code, response.json()["error"]) == (400, "malformed")
    path = f"{ROOM_PATH}/resync"
    headers = served.headers("POST", path, b"{}") | {"content-type": "text/plain"}
    assert told(await served.http.post(path, content=b"{}", headers=headers)) == (415, "not_json")


async def test_no_page_of_another_origin_may_ask(served: Served) -> None:
    origin = {"origin": "https://example.org", "access-control-request-method": "POST"}
    for response in (
        await served.http.get(f"{PREFIX}/info", headers=origin),
        await served.http.options(f"{ROOM_PATH}/resync", headers=origin),
    ):
        assert not [name for name in response.headers if name.startswith("access-control")]
