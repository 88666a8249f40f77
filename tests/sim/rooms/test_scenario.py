from __future__ import annotations

from linnet.machine.commands import Declined
from linnet.rooms.commands import ExamineState, StateIs
from linnet.rooms.event_types import Membership
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.rooms.scenario import MODERATOR, MUTED, Course, RoomScenario
from linnet.sim.rooms.world import RoomsWorld
from linnet.trace.columns import ColumnTrace


def played(scenario: RoomScenario) -> tuple[RoomsWorld, Course]:
    links = LinkModel(constant_latency(20))
    world = RoomsWorld(scenario.seed, scenario.peers, scenario.relays, links, ColumnTrace())
    world.set_up()
    course = Course(scenario, world)
    course.appoint()
    course.run(lambda done, what: None)
    return world, course


def test_people_come_go_speak_and_are_put_out() -> None:
    scenario = RoomScenario(peers=9, relays=1, messages=30, offline=0.4, bans=1, demotions=1, quiet=60)
    world, course = played(scenario)
    assert course.ended - course.began == scenario.seconds
    assert all(map(world.is_online, world.peers))
    assert 0.2 < world.away / scenario.seconds / scenario.peers < 0.6
    assert (len(course.banned), len(course.demoted)) == (1, 1)
    state = world.obtain("peer0", ExamineState(world.room), StateIs)
    (banned,), (demoted,) = course.banned, course.demoted
    found = {one.person: one for one in state.members}
    assert found[world.identities["peer0"].author].level is None
    if not any(isinstance(world.network.answers.get(each), Declined) for each in course.requests):
        assert found[world.identities[banned].author].membership is Membership.BAN
    levels = {state.power.users.get(world.identities[name].author) for name in world.peers}
    assert MODERATOR in levels or MUTED in levels
    assert demoted in world.peers


def test_nobody_goes_where_nobody_is_to_be_away() -> None:
    world, course = played(
        RoomScenario(peers=3, relays=0, messages=5, offline=0.0, bans=0, demotions=0, quiet=5)
    )
    assert world.away == 0.0
    assert course.banned == course.demoted == {}
    assert not any(isinstance(world.network.answers.get(each), Declined) for each in course.requests)


def test_a_run_is_at_least_half_a_minute() -> None:
    assert RoomScenario(messages=1).seconds == 30.0
    assert RoomScenario(messages=100, gap=2.0).seconds == 200.0
