"""A scenario is a value: equal ones are one row of a study."""

from __future__ import annotations

import msgspec

from linnet.overlay.config import Control
from linnet.sim.scenario import StreamScenario


def test_the_default_is_the_published_setting() -> None:
    """Juslenius 2021, section 5.4.1: degree 4, 16 regions."""
    scenario = StreamScenario()
    assert (scenario.degree, scenario.control, scenario.latency) == (4, Control.COUNTER, "aws")


def test_scenarios_travel_as_json() -> None:
    scenario = StreamScenario(nodes=64, control=Control.NAIVE, near=True, churn=30.0, seed=9)
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=StreamScenario) == scenario
