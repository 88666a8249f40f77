"""What went by lately: by attribute, for a while, and no more than so many."""

from __future__ import annotations

from random import Random

from linnet.content.application import Application
from linnet.content.commands import PublishContent
from linnet.content.config import ContentConfig
from linnet.content.lately import Lately, WentBy
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.sim.clock import START
from linnet.sim.identities import seeded_identity
from linnet.store.memory import MemoryStore

CONFIG = ContentConfig(lately=30.0, waiting=2)


def went_by(at: float, attribute: str = "stock") -> WentBy:
    identity = seeded_identity(7, "n", START)
    context = Context(identity.device, identity.card, MemoryStore(), DeliveryConfig(), Random(1), verify_unit)
    passing = Application(context, CONFIG).sign(PublishContent("stock", b"x"), START)
    return WentBy(at, (passing.id, attribute), passing, 2)


def test_what_went_down_here_and_elsewhere_is_kept_apart_for_a_while() -> None:
    lately = Lately(CONFIG)
    here, other, elsewhere = went_by(0.0), went_by(0.0, "price"), went_by(5.0)
    lately.went_down(here)
    lately.went_down(other)
    lately.finished_elsewhere(elsewhere)
    assert [*lately.here("stock", 29.0)] == [here]
    assert [*lately.here("price", 29.0)] == [other]
    assert [*lately.elsewhere("stock", 29.0)] == [elsewhere]
    assert [*lately.here("stock", 30.0)] == []
    lately.tidy(30.0)
    assert [*lately.here("stock", 0.0)] == []
    assert [*lately.elsewhere("stock", 30.0)] == [elsewhere]


def test_the_oldest_are_forgotten_where_there_are_too_many() -> None:
    lately = Lately(CONFIG)
    some = [went_by(float(at)) for at in range(3)]
    for each in some:
        lately.went_down(each)
    assert [*lately.here("stock", 3.0)] == some[1:]


def test_who_reads_may_add_meanwhile() -> None:
    lately = Lately(CONFIG)
    lately.went_down(went_by(0.0))
    for each in lately.here("stock", 1.0):
        lately.went_down(each)
    assert len([*lately.here("stock", 1.0)]) == 2
