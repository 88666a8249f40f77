"""An event that passes, signed by a node of its own."""

from __future__ import annotations

from random import Random

from linnet.content.application import Application
from linnet.content.commands import PublishContent
from linnet.content.config import ContentConfig
from linnet.content.passing import Passing
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.machine.outbox import Outbox
from linnet.sim.clock import START
from linnet.sim.identities import seeded_identity
from linnet.store.memory import MemoryStore


def event(attributes: str = "stock") -> Passing:
    identity = seeded_identity(7, "n", START)
    context = Context(identity.device, identity.card, MemoryStore(), DeliveryConfig(), Random(1), verify_unit)
    out = Outbox()
    application = Application(context, ContentConfig(), out, lambda *_: None, lambda: out)
    return application.sign(PublishContent(attributes, b"x"), START)
