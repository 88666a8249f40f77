"""Events of content as they come from others: how old they may be."""

from __future__ import annotations

from random import Random

import pytest

from linnet.content.application import Application
from linnet.content.commands import PublishContent
from linnet.content.config import ContentConfig
from linnet.content.passing import check
from linnet.core.errors import InvalidEvent
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.machine.outbox import Outbox
from linnet.sim.clock import START
from linnet.sim.identities import seeded_identity
from linnet.store.memory import MemoryStore


@pytest.mark.parametrize(("refresh", "lately", "limit"), [(10.0, 300.0, 320.0), (900.0, 30.0, 1830.0)])
def test_what_is_sent_again_because_it_went_by_lately_is_never_too_old(
    refresh: float, lately: float, limit: float
) -> None:
    identity = seeded_identity(7, "n", START)
    context = Context(identity.device, identity.card, MemoryStore(), DeliveryConfig(), Random(1), verify_unit)
    config = ContentConfig(refresh=refresh, lately=lately)
    out = Outbox()
    application = Application(context, config, out, lambda *_: None, lambda: out)
    said = application.sign(PublishContent("stock", b"x"), START)
    for age in (0.0, lately, limit - 1.0):
        assert check(said.unit, said.card, context, config, START + age).id == said.id
    with pytest.raises(InvalidEvent) as refused:
        check(said.unit, said.card, context, config, START + limit + 1.0)
    assert refused.value.reason is Reason.STALE
