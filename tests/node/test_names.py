"""Names over real sockets, by the library: the example of Toth 2013, passwords, what fails and how."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from tests.node.conftest import NET
from tests.node.village import until

from linnet.core.errors import BadText, Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.names.commands import Fault, NamesAre, NotResolved, Resolved, Via
from linnet.node.config import EdgeSection, KademliaSection, NamesSection, NodeConfig
from linnet.node.library import Node
from linnet.node.names import LeadsNowhere

MUSIC, CLUB = TopicId(b"m" * 32), TopicId(b"c" * 32)


@pytest.fixture
async def town() -> AsyncIterator[tuple[Node, Node, Node]]:
    """Alice, Bob and Carol, who know each other through a fourth node alone."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(Node(config=NodeConfig(net=NET)))
        config = NodeConfig(net=NET, names=NamesSection(stores=(store.address,), patience=20.0))
        alice, bob, carol = [await stack.enter_async_context(Node(config=config)) for _ in range(3)]
        for node in (alice, bob, carol):
            await until(node.status, lambda status: status.peers[0].up)
        yield alice, bob, carol


async def kept(node: Node, label: str) -> None:
    """Until the store has written it down."""

    def is_kept(told: NamesAre) -> bool:
        return any(reason is None for each in told.names if each.label == label for _, reason in each.told)

    await until(node.names.list, is_kept)


async def test_carol_comes_by_bobs_word_to_alices_place(town: tuple[Node, Node, Node]) -> None:
    alice, bob, carol = town
    await alice.names.publish("music", MUSIC)
    await bob.names.set_petname("alice", alice.author)
    await bob.names.publish("alice", zone=alice.author)
    await carol.names.set_petname("bob", bob.author)
    await kept(alice, "music")
    await kept(bob, "alice")
    found = await carol.names.resolve("music.alice.bob")
    assert (found.place, found.contacts) == (MUSIC, (alice.contact,))
    assert [(step.via, step.says) for step in found.path] == [
        (Via.PETNAME, None),
        (Via.DELEGATION, bob.author),
        (Via.PLACE, alice.author),
    ]
    assert (await bob.names.resolve("music.alice")).place == MUSIC
    await alice.names.withdraw("music")
    await until(
        lambda: carol.names.look_up("music.alice.bob"),
        lambda outcome: getattr(outcome, "fault", None) is Fault.REMOVED,
    )
    with pytest.raises(LeadsNowhere, match=r"music.alice.bob: removed: 'music' in the zone lp1") as caught:
        await carol.names.resolve("music.alice.bob")
    assert caught.value.outcome.zone == alice.author


async def test_a_name_is_found_while_its_owner_is_away_and_then_while_nobody_is_there() -> None:
    async with AsyncExitStack() as stack:
        keeping = await stack.enter_async_context(AsyncExitStack())
        store = await keeping.enter_async_context(Node(config=NodeConfig(net=NET)))
        config = NodeConfig(net=NET, names=NamesSection(stores=(store.address,), patience=20.0))
        bob = await stack.enter_async_context(Node(config=config))
        async with Node(config=config) as alice:
            await alice.names.publish("music", MUSIC)
            await kept(alice, "music")
            address = f"music.{to_text(Sort.PERSON, alice.author)}"
        await until(bob.status, lambda status: status.peers[0].up)
        assert (await bob.names.resolve(address)).place == MUSIC
        await keeping.aclose()
        await until(bob.status, lambda status: not status.peers[0].up)
        assert (await bob.names.resolve(address)).place == MUSIC, "what was found before serves offline"
        with pytest.raises(LeadsNowhere) as caught:
            await bob.names.resolve(f"tech.{address.partition('.')[2]}")
        assert caught.value.outcome.fault is Fault.UNANSWERED


async def test_through_the_hash_table_a_name_is_found_that_no_store_keeps() -> None:
    names = NamesSection(serve=False)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(
            Node(config=NodeConfig(net=NET, names=names, kademlia=KademliaSection(enabled=True)))
        )
        section = KademliaSection(enabled=True, bootstrap=(first.address,))
        config = NodeConfig(net=NET, names=names, kademlia=section)
        alice, carol = [await stack.enter_async_context(Node(config=config)) for _ in range(2)]
        await carol.names.set_petname("alice", alice.author)

        async def looked_up() -> Resolved | NotResolved:
            # Links of the hash table come and go: what is published before it is reached is so again.
            await alice.names.publish("music", MUSIC)
            return await carol.names.look_up("music.alice")

        found = await until(looked_up, lambda outcome: isinstance(outcome, Resolved))
        assert isinstance(found, Resolved)
        assert (found.place, found.contacts) == (MUSIC, (alice.contact,))


async def test_a_password_is_needed_to_find_it(town: tuple[Node, Node, Node]) -> None:
    alice, bob, carol = town
    await bob.names.publish("alice", zone=alice.author)
    await alice.names.publish("Club", CLUB, (bob.contact, carol.address), password="swordfish")
    await carol.names.set_petname("bob", bob.author)
    await kept(alice, "club")
    await kept(bob, "alice")
    found = await carol.names.resolve("club.alice.bob", "swordfish")
    assert (found.place, found.contacts) == (CLUB, (bob.contact, carol.contact))
    for password in (None, "guess"):
        with pytest.raises(LeadsNowhere) as caught:
            await carol.names.resolve("club.alice.bob", password)
        assert caught.value.outcome.fault is Fault.UNKNOWN
    assert (await alice.names.resolve("club", "swordfish")).place == CLUB
    assert (await alice.names.withdraw("club", "swordfish")).removed
    with pytest.raises(BadText, match="1 to 1024 bytes"):
        await alice.names.publish("club", CLUB, password="")


async def test_petnames_stay_here(town: tuple[Node, Node, Node]) -> None:
    alice, bob, _ = town
    assert (await alice.names.set_petname("Bob", bob.author)).petnames == (("bob", bob.author),)
    assert (await alice.names.petnames()).petnames == (("bob", bob.author),)
    with pytest.raises(Refused, match="somebody else already"):
        await alice.names.set_petname("bob", alice.author)
    assert (await alice.names.remove_petname("bob")).petnames == ()
    key = to_text(Sort.PERSON, bob.author)
    with pytest.raises(LeadsNowhere) as caught:
        await alice.names.resolve(key)
    assert (caught.value.outcome.fault, caught.value.outcome.label) == (Fault.UNKNOWN, "+")


async def test_who_does_not_listen_names_somebody_who_does(town: tuple[Node, Node, Node]) -> None:
    alice, _, _ = town
    config = NodeConfig(net=NET, edge=EdgeSection(proxies=(alice.address,)))
    async with Node(config=config) as phone:
        with pytest.raises(Refused, match="does not listen") as caught:
            await phone.names.publish("music", MUSIC)
        assert caught.value.reason is Reason.UNREACHABLE
        assert (await phone.names.publish("music", MUSIC, (alice.address,))).label == "music"
        assert (await phone.names.resolve("music")).contacts == (alice.contact,)
