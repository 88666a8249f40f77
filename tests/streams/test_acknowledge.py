"""The receiver's word that something arrived, if a subscription allows it."""

from __future__ import annotations

from tests.delivery.voices import TOPIC, Voice, asked, take
from tests.streams.stage import NOW, context_of

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.delivery.messages import ChainPlace
from linnet.delivery.receipts import sign_receipt
from linnet.machine.outbox import Outbox
from linnet.streams.receipts import AcknowledgeDue, Acknowledgements

S1, S2 = PeerId(b"1" * 32), PeerId(b"2" * 32)
CONTACTS = (Contact(S1, ("tls://s:1",)), Contact(S2, ("tls://s:2",)))
TIMER = AcknowledgeDue(TOPIC)
PURPOSE = f"confirming {TOPIC.hex()[:16]}"


def test_it_waits_for_more_to_be_said_then_tells_a_storage_node_that_is_linked() -> None:
    context, out = context_of(), Outbox()
    acknowledgements = Acknowledgements(TOPIC, context, out)
    acknowledgements.set_storage(CONTACTS)
    context.links[S2] = None
    voice = Voice()
    chain, empty = voice.chain(), Voice("ben").chain(base=3)
    take(chain, voice.say())
    chains = {chain.key: chain, empty.key: empty}
    assert asked(out, acknowledgements.acknowledge_soon) == [SetTimer(1.0, TIMER)]
    assert asked(out, acknowledgements.acknowledge_soon) == []
    place = ChainPlace(voice.identity.author, voice.identity.card.device, 0, 0, False)
    receipt = sign_receipt(context.key, TOPIC, False, NOW, (place,))
    assert asked(out, acknowledgements.acknowledge, chains, NOW) == [Send(S2, receipt)]
    assert asked(out, acknowledgements.acknowledge_soon) == [SetTimer(1.0, TIMER)]


def test_a_link_is_made_for_it_once_and_let_go() -> None:
    context, out = context_of(), Outbox()
    acknowledgements = Acknowledgements(TOPIC, context, out)
    acknowledgements.set_storage(CONTACTS)
    acknowledgements.acknowledge_soon()
    assert asked(out, acknowledgements.acknowledge, {}, NOW) == [Hold(S1, CONTACTS[0].hints, PURPOSE)]
    acknowledgements.acknowledge_soon()
    assert asked(out, acknowledgements.acknowledge, {}, NOW) == []
    assert asked(out, acknowledgements.handle_link_up, S2) == []
    assert asked(out, acknowledgements.handle_link_up, S1) == [SetTimer(1.0, TIMER)]
    assert asked(out, acknowledgements.stop) == [CancelTimer(TIMER), Release(S1, PURPOSE)]
    assert asked(out, acknowledgements.stop) == [CancelTimer(TIMER)]


def test_without_storage_nobody_is_told() -> None:
    out = Outbox()
    acknowledgements = Acknowledgements(TOPIC, context_of(), out)
    acknowledgements.acknowledge_soon()
    assert asked(out, acknowledgements.acknowledge, {}, NOW) == []
