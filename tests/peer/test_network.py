"""Names through the hash table: wishes become questions, answers become resolutions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.names.people import DAY, NOW, PLACE_C, Z, person, place, zone_of

from linnet.core.effects import AfterCommit, Reply, Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import Asked, LinkDown, LinkUp, Received
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.identity.text import Sort, to_text
from linnet.machine.commands import Declined
from linnet.machine.outbox import Effect, Outbox
from linnet.machine.router import Router
from linnet.names.block_store import network_key, to_network
from linnet.names.commands import (
    Fault,
    ListPetnames,
    NotResolved,
    PetnamesAre,
    PublishName,
    RemovePetname,
    Resolved,
    ResolveName,
)
from linnet.names.config import NamesConfig
from linnet.names.part import Names
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.messages import (
    FindNode,
    FindRecord,
    KademliaMessage,
    KeepRecord,
    NodeIsHere,
    NodesAre,
    PingNode,
    RecordKept,
    RecordsAre,
)
from linnet.overlay.kademlia.part import Kademlia
from linnet.overlay.kademlia.value_records import Stored
from linnet.peer.config import PeerConfig
from linnet.peer.interface import AnyCommand
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

ALICE, BOB = person("alice"), person("bob")
OTHER = PeerId(b"p" * 32)
BLOCK = zone_of("alice").publish("music", place(PLACE_C, Z), DAY, NOW).block
ADDRESS = f"music.{to_text(Sort.PERSON, ALICE.author)}"


class Bob:
    """His names, with a link to somebody who takes part in the hash table, if he does."""

    def __init__(self, config: KademliaConfig | None = None) -> None:
        self.out = Outbox()
        store = MemoryStore()
        context = Context(BOB.device, BOB.card, store, DeliveryConfig(), Random(1), verify_unit)
        names = Names(context, NamesConfig(), self.out, in_network=config is not None)
        parts: tuple[Names | Kademlia, ...] = (names,)
        if config is not None:
            own = Contact(BOB.peer, ("tls://192.0.2.1:1",))
            parts += (Kademlia(own, config, store.cells, Random(1), self.out),)
        self.router = Router(self.out, parts)
        for part in parts:
            part.start(NOW)
        hello = Hello(1, 1, {"kademlia": 1}, listens=("tls://198.51.100.1:1",))
        self.link(LinkUp(OTHER, hello, True, None))

    def ask(self, request: int, command: AnyCommand) -> list[Effect]:
        self.router.command(request, command, NOW)
        return self.out.take()

    def hear(self, message: KademliaMessage) -> list[Effect]:
        self.router.message(OTHER, message, NOW)
        return self.out.take()

    def link(self, event: LinkUp | LinkDown) -> list[Effect]:
        self.router.input(event, NOW)
        return self.out.take()


def asked(effects: Sequence[Effect]) -> list[object]:
    return [each.message for each in effects if isinstance(each, Send)]


def replied(effects: Sequence[Effect]) -> list[object]:
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    return [each.result for each in promised if isinstance(each, Reply)]


def search(bob: Bob, *records: Stored) -> list[Effect]:
    (question,) = asked(bob.ask(1, ResolveName(ADDRESS)))
    assert question == FindRecord(1, network_key(BLOCK.lookup))
    return bob.hear(RecordsAre(1, records, (), None))


def test_an_address_is_resolved_from_what_the_network_keeps() -> None:
    (found,) = replied(search(Bob(KademliaConfig()), to_network(BLOCK, ALICE.device)))
    assert isinstance(found, Resolved)
    assert found.place == PLACE_C


def test_records_of_the_network_that_are_none_of_names_are_recorded() -> None:
    rubbish = to_network(BLOCK, BOB.device)
    effects = search(Bob(KademliaConfig()), rubbish)
    (failed,) = replied(effects)
    assert isinstance(failed, NotResolved)
    assert failed.fault is Fault.UNKNOWN
    reasons = [each.reason for each in effects if isinstance(each, Record) and each.reason is not None]
    assert reasons == [Reason.MALFORMED]


def test_a_link_that_goes_ends_the_search() -> None:
    bob = Bob(KademliaConfig())
    bob.ask(1, ResolveName(ADDRESS))
    (failed,) = replied(bob.link(LinkDown(OTHER, Reason.CRASHED)))
    assert isinstance(failed, NotResolved)
    assert failed.fault is Fault.UNANSWERED


def test_what_is_published_is_placed_and_its_keepers_asked_for_first() -> None:
    bob = Bob(KademliaConfig())
    (question,) = asked(bob.ask(1, PublishName("music", PLACE_C, (Z,))))
    assert isinstance(question, FindNode)
    (handed,) = asked(bob.hear(NodesAre(question.request, (), None)))
    assert isinstance(handed, KeepRecord)
    assert handed.record.key == question.target
    assert bob.hear(RecordKept(handed.request, None))[2:] == [], "names ask for no word of who keeps it"


def test_when_too_much_is_under_way_names_go_on_without_the_network() -> None:
    bob = Bob(KademliaConfig(lookups=1))
    bob.ask(1, ResolveName(ADDRESS))
    effects = bob.ask(2, ResolveName(ADDRESS))
    (failed,) = replied(effects)
    assert isinstance(failed, NotResolved)
    dropped = [each.reason for each in effects if isinstance(each, Record)]
    assert dropped == [Reason.QUEUE_FULL]


def test_a_node_hands_commands_about_names_to_them() -> None:
    peer = Peer(PeerConfig(), BOB, MemoryStore(), Random(1))
    assert peer.handle(Asked(1, ListPetnames()), NOW) == [Reply(1, PetnamesAre(()))]
    (declined,) = peer.handle(Asked(2, RemovePetname("alice")), NOW)
    assert isinstance(declined, Reply)
    assert isinstance(declined.result, Declined)
    assert declined.result.reason is Reason.UNKNOWN


def test_who_takes_no_part_says_so_and_is_not_asked() -> None:
    (failed,) = replied(Bob().ask(1, ResolveName(ADDRESS)))
    assert isinstance(failed, NotResolved)
    for kademlia in (None, KademliaConfig()):
        peer = Peer(PeerConfig(kademlia=kademlia), BOB, MemoryStore(), Random(1))
        assert ("kademlia" in peer.hello.protocols) is (kademlia is not None)
        (said,) = peer.handle(Received(OTHER, PingNode(1)), NOW)
        note = "PingNode: this node takes no part in the hash table"
        refused = Record(Kind.REJECTED, peer=OTHER, reason=Reason.UNSUPPORTED, note=note)
        assert said == (refused if kademlia is None else Send(OTHER, NodeIsHere(1)))
