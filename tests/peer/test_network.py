"""Names through the hash table: wishes become questions, answers become resolutions."""

from __future__ import annotations

from random import Random

from tests.names.people import DAY, NOW, PLACE_C, Z, person, place, zone_of

from linnet.core.effects import AfterCommit, Reply, Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.identity.text import Sort, to_text
from linnet.names.commands import Fault, NotResolved, PublishName, Resolved, ResolveName
from linnet.names.config import NamesConfig
from linnet.names.names import Names
from linnet.names.network_records import network_key, to_network
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.kademlia import Kademlia
from linnet.overlay.kademlia.messages import FindNode, FindRecord, KeepRecord, NodesAre, PingNode, RecordsAre
from linnet.overlay.kademlia.records import Stored
from linnet.peer.config import PeerConfig
from linnet.peer.content import Content
from linnet.peer.network import Network, NetworkEffect
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.trace.records import Record

ALICE, BOB = person("alice"), person("bob")
OTHER = PeerId(b"p" * 32)
BLOCK = zone_of("alice").publish("music", place(PLACE_C, Z), DAY, NOW).block
ADDRESS = f"music.{to_text(Sort.PERSON, ALICE.author)}"


def network(kademlia: KademliaConfig | None = None) -> Network:
    """Bob's, with a link to somebody who takes part, if he does."""
    store = MemoryStore()
    context = Context(BOB.device, BOB.card, store, DeliveryConfig(), Random(1), verify_unit)
    names = Names(context, NamesConfig(), in_network=kademlia is not None)
    table = None
    if kademlia is not None:
        table = Kademlia(Contact(BOB.peer, ("tls://192.0.2.1:1",)), kademlia, store.cells, Random(1))
    made = Network(table, names, Content(context, PeerConfig(), table), ())
    made.start(NOW)
    made.link_up(LinkUp(OTHER, Hello(1, 1, {"kademlia": 1}, listens=("tls://198.51.100.1:1",)), True), NOW)
    return made


def asked(effects: list[NetworkEffect]) -> list[object]:
    return [each.message for each in effects if isinstance(each, Send)]


def replied(effects: list[NetworkEffect]) -> list[object]:
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    return [each.result for each in promised if isinstance(each, Reply)]


def search(bob: Network, *records: Stored) -> list[NetworkEffect]:
    (question,) = asked(bob.ask(1, ResolveName(ADDRESS), NOW))
    assert question == FindRecord(1, network_key(BLOCK.lookup))
    return bob.on_message(OTHER, RecordsAre(1, records, (), None), NOW)


def test_an_address_is_resolved_from_what_the_network_keeps() -> None:
    (found,) = replied(search(network(KademliaConfig()), to_network(BLOCK, ALICE.device)))
    assert isinstance(found, Resolved)
    assert found.place == PLACE_C


def test_records_of_the_network_that_are_none_of_names_are_recorded() -> None:
    rubbish = to_network(BLOCK, BOB.device)
    effects = search(network(KademliaConfig()), rubbish)
    (failed,) = replied(effects)
    assert isinstance(failed, NotResolved)
    assert failed.fault is Fault.UNKNOWN
    reasons = [each.reason for each in effects if isinstance(each, Record) and each.reason is not None]
    assert reasons == [Reason.MALFORMED]


def test_a_link_that_goes_ends_the_search() -> None:
    bob = network(KademliaConfig())
    bob.ask(1, ResolveName(ADDRESS), NOW)
    (failed,) = replied(bob.link_gone(LinkDown(OTHER, Reason.CRASHED), NOW))
    assert isinstance(failed, NotResolved)
    assert failed.fault is Fault.UNANSWERED


def test_what_is_published_is_placed_and_its_keepers_asked_for_first() -> None:
    bob = network(KademliaConfig())
    effects = bob.ask(1, PublishName("music", PLACE_C, (Z,)), NOW)
    (question,) = asked(effects)
    assert isinstance(question, FindNode)
    (handed,) = asked(bob.on_message(OTHER, NodesAre(question.request, (), None), NOW))
    assert isinstance(handed, KeepRecord)
    assert handed.record.key == question.target


def test_when_too_much_is_under_way_names_go_on_without_the_network() -> None:
    bob = network(KademliaConfig(lookups=1))
    bob.ask(1, ResolveName(ADDRESS), NOW)
    effects = bob.ask(2, ResolveName(ADDRESS), NOW)
    (failed,) = replied(effects)
    assert isinstance(failed, NotResolved)
    dropped = [each.reason for each in effects if isinstance(each, Record)]
    assert dropped == [Reason.QUEUE_FULL]


def test_who_takes_no_part_says_so_and_is_not_asked() -> None:
    bob = network()
    (record,) = bob.on_message(OTHER, PingNode(1), NOW)
    assert isinstance(record, Record)
    assert record.reason is Reason.UNSUPPORTED
    (failed,) = replied(bob.ask(1, ResolveName(ADDRESS), NOW))
    assert isinstance(failed, NotResolved)
    assert not bob.is_on
    for kademlia in (None, KademliaConfig()):
        peer = Peer(PeerConfig(kademlia=kademlia), BOB, MemoryStore(), Random(1))
        assert ("kademlia" in peer.hello.protocols) is (kademlia is not None)
