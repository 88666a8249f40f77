from __future__ import annotations

from tests.streams.village import Village

from linnet.identity.text import Sort, to_text
from linnet.streams.commands import Consumed, Declare, Policy, Published
from linnet.streams.options import StorageRule


def test_the_owners_policy_is_no_part_of_history() -> None:
    news = f"{to_text(Sort.PERSON, Village(peers=4).identity['p0'].author)}/news"
    village = Village(peers=4, rules=(StorageRule(news),))
    live = village.subscribe("p1", news)
    village.run(5)
    assert isinstance(village.ask("p0", Declare(news, Policy(publishers=()))), Published)
    village.publish("p0", b"first", stream=news)
    village.run(3)
    late = village.subscribe("p2", news, since=0.0, live=False)
    village.run(5)
    assert village.bodies("p1", live) == [b"first"]
    assert village.bodies("p2", late) == [b"first"]


def test_a_durable_subscription_resumes_within_a_burst() -> None:
    village = Village(peers=4, autoconsume=False)
    first = village.subscribe("p1", name="mine")
    village.run(5)
    village.publish("p0", b"one", b"two", b"three")
    village.run(2)
    assert village.bodies("p1", first) == [b"one", b"two", b"three"]
    handled = village.items["p1", first].index(
        next(item for item in village.items["p1", first] if getattr(item, "body", b"") == b"two")
    )
    village.ask("p1", Consumed(first, handled + 1))
    village.crash("p1")
    village.restart("p1")
    again = village.subscribe("p1", name="mine")
    village.run(10)
    assert village.bodies("p1", again) == [b"three"]
