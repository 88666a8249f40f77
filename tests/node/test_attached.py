"""A program beside a running node: the calls of a node, over the control API of one in another process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.test_places import guest
from tests.node.village import member

from linnet.api.errors import NodeUnreachable
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended
from linnet.event.event import Event
from linnet.names.commands import ResolveName
from linnet.net.clock import Clock
from linnet.node.attached import AttachedNode
from linnet.node.home import HomeBusy, init
from linnet.node.library import Node
from linnet.node.places import TurnedAway
from linnet.node.subscription import Subscription
from linnet.places.deed import Policy
from linnet.places.items import Changed

LIMIT = 30.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a lone node that runs in a process of its own."""
    path = tmp_path_factory.mktemp("attached") / "home"
    init(path, Clock().now())
    code = (
        "import asyncio; from pathlib import Path; from linnet.node.running import run_node; "
        f"asyncio.run(run_node(Path({str(path)!r}), ready=lambda node: print('up', flush=True)))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "up"
        yield path
        process.terminate()


async def take(subscription: Subscription, count: int) -> list[bytes]:
    bodies: list[bytes] = []
    async with asyncio.timeout(LIMIT):
        async for event in subscription:
            bodies.append(event.body)
            if len(bodies) == count:
                break
    return bodies


async def test_what_is_published_beside_it_is_read_beside_it(home: Path) -> None:
    async with Node.attach(home) as node:
        async with node.subscribe("rain") as live:
            outcome = await node.publish("rain", ["a", b"b"], confirm=LIMIT)
            assert (outcome.first, len(outcome.ids)) == (0, 2)
            assert (outcome.unsent, outcome.unconfirmed) == (Reason.NO_ADDRESS, Reason.NO_STORAGE)
            assert await take(live, 2) == [b"a", b"b"]
        assert await take(node.subscribe("rain", since=0), 2) == [b"a", b"b"]
        items = [item async for item in node.history("rain").items()]
        assert [item.body for item in items if isinstance(item, Event)] == [b"a", b"b"]
        assert [type(item) for item in items[2:]] == [CaughtUp, Ended]
        (stream,) = [each for each in (await node.status()).streams if each.stream == "rain"]
        assert stream.alone == "no_address"


async def test_a_durable_one_goes_on_behind_what_was_handled(home: Path) -> None:
    async with Node.attach(home) as node:
        async with node.subscribe("log", name="mine") as log:
            assert not log.resumed
            await node.publish("log", ["1", "2", "3"])
            items = log.items()
            async with asyncio.timeout(LIMIT):
                first = await anext(items)
                await anext(items)  # The first counts as handled, the second does not yet.
            assert isinstance(first, Event)
        async with node.subscribe("log", name="mine") as log:
            assert log.resumed
            assert await take(log, 2) == [b"2", b"3"]


async def test_who_stops_waiting_lets_go(home: Path) -> None:
    async with Node.attach(home) as node:
        quiet = node.subscribe("nothing")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(quiet.items()), 0.2)
        await node.publish("nothing", b"after all")


async def test_what_is_declined_is_refused_as_by_a_node_of_ones_own(home: Path) -> None:
    async with Node.attach(home) as node:
        with pytest.raises(Refused) as caught:
            await take(node.subscribe("x", since=5.0, name="mine"), 1)
        assert caught.value.reason is Reason.UNSUPPORTED


async def test_a_second_node_in_the_home_is_told_how_to_attach(home: Path) -> None:
    with pytest.raises(HomeBusy, match=r"Node\.attach\("):
        async with Node(home):
            pass


async def test_where_no_node_runs_it_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(NodeUnreachable, match="linnet up"):
        async with Node.attach(tmp_path / "none"):
            pass


async def test_it_is_used_within_its_block(home: Path) -> None:
    node = AttachedNode(home)
    with pytest.raises(NodeUnreachable, match="async with"):
        await node.publish("rain", b"x")


async def test_all_that_is_derived_is_asked_beside_it_as_within(home: Path) -> None:
    async with Node.attach(home) as node:
        status = await node.status()
        friend = PeerId(b"f" * 32)
        assert [each.name for each in (await node.names.set_petname("bob", status.person)).petnames] == [
            "bob"
        ]
        with pytest.raises(Refused) as caught:
            await node.names.set_petname("bob", AuthorId(b"x" * 32))
        assert caught.value.reason is Reason.IN_USE
        assert not (await node.edge.status()).is_edge
        assert not (await node.lan.status()).is_enabled
        assert (await node.overlay.privacy()).epsilon == 0.0
        await node.block(friend)
        assert (await node.status()).blocked == (friend,)
        assert [each.is_this for each in await node.devices.all()] == [True]


async def test_what_only_a_nodes_own_process_may_ask_is_refused_with_a_way(home: Path) -> None:
    async with Node.attach(home) as node:
        with pytest.raises(Refused, match=r"Node\(home\)") as caught:
            await node.ask(ResolveName("music.alice"))
        assert caught.value.reason is Reason.UNSUPPORTED


async def test_a_room_from_beside_a_node(home: Path, tmp_path: Path) -> None:
    """Found, invite, join, say, read, look, attach, leave: all of it at a node of another process."""
    async with Node.attach(home) as ada, Node(config=member("bea", ("127.0.0.1:0",))) as bea:
        room = await ada.create_room("tea")
        invitation = await room.invite(lifetime=60.0)
        assert invitation.name == "tea"
        theirs = await bea.join_room(invitation.text)
        assert theirs.id == room.id
        sent = await room.send("one cup")
        async for item in room.read(since=0.0, state=False):
            if isinstance(item, Event):
                assert (item.id, item.body) == (sent.ids[0], b"one cup")
                break
        await theirs.send(["and one for me"])
        async for item in room.read(since=0.0, name="beside", state=False):
            if item.body == b"and one for me":
                assert item.author == bea.author
                break
        assert {each.person for each in await room.members()} == {bea.author, (await ada.status()).person}
        await room.set_topic("cake")
        entries = {entry.kind: entry.event.body for entry in (await room.state()).entries}
        assert entries["topic"] == b"cake"
        assert [each.event for each in (await room.ledger(sent.ids[0])).events] == [sent.ids[0]]
        path = tmp_path / "cake.txt"
        (tmp_path / "theirs").mkdir()
        path.write_bytes(b"sugar" * 1000)
        attached = (await room.attach(path)).ids[0]
        async for item in theirs.read(since=0.0, state=False):
            if item.id == attached:
                fetched = await theirs.fetch(item, tmp_path / "theirs")
                assert fetched.read_bytes() == path.read_bytes()
                break
        with pytest.raises(Refused) as caught:
            await room.send([])
        assert caught.value.reason is Reason.MALFORMED
        left = await room.leave()
        assert (left.room, left.members) == (room.id, 1)


async def test_a_place_from_beside_a_node(home: Path, tmp_path: Path) -> None:
    """Host, announce, hear, look, watch, save, read history, change: at a node of another process."""
    async with asyncio.timeout(LIMIT), Node.attach(home) as ada, Node(config=guest("bea")) as bea:
        place = await ada.places.host(name="tea", state={"_topic": b"\xff", "_profile_city": "Oslo"})
        address = await place.address()
        assert (address.name, address.place) == ("tea", place.id)
        async with place.listen("_request") as requests:
            visited = await bea.places.enter(address.text)
            talked = await visited.talk("one sugar", variables={"_sugar": "1"})
            request = await anext(aiter(requests))
            await requests.acknowledge()
        assert (request.nym, request.number, request.text) == (bea.author, talked.request, "one sugar")
        assert request.variables == {"_sugar": b"1"}
        assert await place.look("_topic") == {"_topic": b"\xff"}
        assert await place.look_at("_profile_city_of_birth") == ("_profile_city", b"Oslo")
        changes = place.watch("_profile", present=True)
        assert (await anext(changes)).value == b"Oslo"
        said = await place.announce("hello", state={"_profile_city": None}, variables={"_volume": b"3"})
        assert await anext(changes) == Changed(place.id, said.message, "_profile_city", None)
        await changes.aclose()
        async with place.listen(since=said.message, name="beside", largest=1000) as listening:
            heard = aiter(listening)
            message = await anext(heard)
            assert (message.number, message.text, message.variables["_volume"]) == (
                said.message,
                "hello",
                b"3",
            )
            body = bytes(range(256)) * 4096
            await place.announce(body, "_file")
            file = await anext(heard)
            assert (file.size, file.body) == (len(body), None)
            assert (await file.save(tmp_path / "body")).read_bytes() == body
            await listening.acknowledge()
        async with place.listen(name="beside") as listening:
            assert listening.resumed
            last = await place.announce("again")
            assert (await anext(aiter(listening))).number == last.message
        past = [each async for each in place.history(said.message, last.message, 10)]
        assert [(each.method, each.text) for each in past] == [
            ("_message", "hello"),
            ("_file", ""),
            ("_message", "again"),
        ]
        assert [each.nym for each in (await place.guests()).guests] == [bea.author]
        (receipt,) = (await place.receipts(last.message)).receipts
        assert receipt.nym == bea.author
        changed = await place.change(cohosts=(bea.author,))
        assert changed.deed.cohosts == (bea.author,)
        assert (await place.status()).role == "host"
        assert (await ada.places.find("tea")).id == place.id
        with pytest.raises(Refused):
            await place.talk("to myself")
        with pytest.raises(Refused):
            await place.admit(bea.author)


async def test_a_guest_at_a_door_from_beside_a_node(home: Path) -> None:
    """Knock, be turned away to another place, be let in, say something, go."""
    async with asyncio.timeout(LIMIT), Node.attach(home) as ada, Node(config=guest("bea")) as bea:
        lobby = await bea.places.host(name="lobby")
        club = await bea.places.host(Policy.CLOSED, "club")
        elsewhere, address = await lobby.address(), await club.address()
        with pytest.raises(Refused) as caught:
            await ada.places.enter(address, waits=False)
        assert caught.value.reason is Reason.WAITING
        person = (await ada.status()).person
        await club.reject(person, "not yet")
        while all(each.turned is None for each in await ada.places.statuses()):
            pass  # Otherwise these words might answer the next knock.

        async def keep_door() -> None:
            knocks = club.door()
            assert (await anext(knocks)).text == b"let me in"
            await club.reject(person, "members only", elsewhere=elsewhere)
            assert (await anext(knocks)).text == b"\xff"
            await club.admit(person)
            await knocks.aclose()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep_door())
            with pytest.raises(TurnedAway, match="members only") as turned:
                await ada.places.enter(address, text="let me in")
            assert turned.value.elsewhere is not None
            assert turned.value.elsewhere.place == lobby.id
            visited = await ada.places.enter(address, text=b"\xff")
        async with club.listen("_request") as listening:
            await visited.talk("here I am")
            assert (await anext(aiter(listening))).text == "here I am"
        await visited.disconnect()
        assert (await ada.places.enter(address)).id == club.id
        await visited.leave()
        assert (await club.guests()).guests == ()


async def test_a_door_kept_from_beside_a_node(home: Path) -> None:
    """Who knocks is told to the program beside the host's node, whatever bytes it says, and let in by it."""
    async with asyncio.timeout(LIMIT), Node.attach(home) as ada, Node(config=guest("bea")) as bea:
        club = await ada.places.host(Policy.PRIVATE, "private")
        address = await club.address()
        async with asyncio.TaskGroup() as tasks:
            knocks = club.door()
            knocked = tasks.create_task(anext(knocks))
            entering = tasks.create_task(bea.places.enter(address, text=b"\xff bea"))
            found = await knocked
            assert (found.nym, found.text) == (bea.author, b"\xff bea")
            await club.admit(found.nym)
            await entering
            await knocks.aclose()
        assert [each.nym for each in (await club.guests()).guests] == [bea.author]
        await club.eject(bea.author)
        assert (await club.guests()).guests == ()
