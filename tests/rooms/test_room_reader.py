"""History is read in one order, at everyone and after restarts; what comes late is marked."""

from __future__ import annotations

from tests.rooms.circle import Circle

from linnet.core.effects import Deliver
from linnet.core.ids import PeerId
from linnet.delivery.items import CaughtUp, Inserted
from linnet.event.event import Event
from linnet.peer.interface import Handed
from linnet.rooms.commands import ReadRoom


class Apart(Circle):
    """Everybody is handed what they read by subscription."""

    def __init__(self, *names: str, seed: int) -> None:
        self.by: dict[tuple[str, int], list[Handed]] = {}
        super().__init__(*names, seed=seed)

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        self.by.setdefault((self.name(peer), effect.subscription), []).extend(effect.items)
        super()._deliver(peer, effect, now)

    def history(self, name: str, number: int, since: float = 0.0) -> list[Handed]:
        self.ask(name, ReadRoom(number, self.room, since, None, live=False, state=False))
        self.run(0.5)
        return self.by[name, number]

    def speak_apart(self) -> None:
        """Each half says three things that the other does not hear."""
        self.network.partition([[self.peer("ann"), self.peer("cid")], [self.peer("bob")]])
        self.run(1.0)
        for number in range(3):
            self.say("ann", f"ann {number}")
            self.run(0.7)
            self.say("bob", f"bob {number}")
            self.run(0.7)
        self.network.heal()
        self.run(60.0)


def texts(items: list[Handed]) -> list[str]:
    return [item.body.decode() for item in items if isinstance(item, Event)]


def test_after_two_have_spoken_apart_all_show_the_same_order_and_after_restarts() -> None:
    circle = Apart("ann", "bob", "cid", seed=51)
    circle.found("ann", "bob", "cid")
    circle.say("ann", "before")
    circle.run(2.0)
    circle.speak_apart()
    circle.say("bob", "after")
    circle.run(3.0)
    expected = ["before", "ann 0", "bob 0", "ann 1", "bob 1", "ann 2", "bob 2", "after"]
    assert texts(circle.by["ann", 1]) != texts(circle.by["bob", 1]), "they came in one order anyway"
    for name in ("ann", "bob", "cid"):
        assert texts(circle.history(name, 7)) == expected
    circle.offline("ann", "bob", "cid")
    circle.online("ann", "bob", "cid")
    circle.run(5.0)
    for name in ("ann", "bob", "cid"):
        circle.by.clear()
        assert texts(circle.history(name, 8)) == expected


def test_what_came_late_is_marked_in_history_where_it_came_late() -> None:
    circle = Apart("ann", "bob", "cid", seed=52)
    circle.found("ann", "bob", "cid")
    circle.speak_apart()
    for name, other in (("ann", "bob"), ("bob", "ann")):
        items = circle.history(name, 7)
        marked = {item.event: item.before for item in items if isinstance(item, Inserted)}
        late = [item for item in items if isinstance(item, Event) and item.id in marked]
        # Of what the other said the last came after everything of ours, or before something of it.
        assert {item.body.decode() for item in late} <= {f"{other} {number}" for number in range(3)}
        assert f"{other} 0" in {item.body.decode() for item in late}
        order = [item.id for item in items if isinstance(item, Event)]
        for at, item in enumerate(items):
            if isinstance(item, Inserted):
                following = items[at + 1]
                assert isinstance(following, Event)
                assert following.id == item.event
                assert item.before not in order[: order.index(item.event)]
        assert isinstance(items[-2], CaughtUp)


def test_a_live_reader_is_told_that_what_comes_belongs_further_up() -> None:
    circle = Apart("ann", "bob", "cid", seed=53)
    circle.found("ann", "bob", "cid")
    circle.ask("ann", ReadRoom(9, circle.room, None, None, state=False))
    circle.speak_apart()
    items = circle.by["ann", 9]
    said = {item.id: item.body.decode() for item in items if isinstance(item, Event)}
    assert texts(items)[:3] == ["ann 0", "ann 1", "ann 2"]
    assert sorted(texts(items)[3:]) == ["bob 0", "bob 1", "bob 2"]
    marks = {said[item.event]: said[item.before] for item in items if isinstance(item, Inserted)}
    assert marks["bob 0"] == "ann 1"
    assert marks["bob 1"] == "ann 2"
    assert "bob 2" not in marks


def test_only_what_is_asked_for_is_put_in_order_and_what_comes_meanwhile_follows() -> None:
    circle = Apart("ann", "bob", "cid", seed=54)
    circle.found("ann", "bob", "cid")
    circle.say("ann", "long ago")
    circle.run(100.0)
    since = circle.network.now
    circle.speak_apart()
    assert texts(circle.history("cid", 7, since)) == ["ann 0", "bob 0", "ann 1", "bob 1", "ann 2", "bob 2"]
    circle.ask("cid", ReadRoom(8, circle.room, 0.0, None, state=False))
    circle.say("bob", "now")
    circle.run(2.0)
    assert texts(circle.by["cid", 8]) == [
        "long ago",
        "ann 0",
        "bob 0",
        "ann 1",
        "bob 1",
        "ann 2",
        "bob 2",
        "now",
    ]
