from __future__ import annotations

import pytest

from linnet.core.errors import ConfigError
from linnet.sim.groups_report import GroupScenario


@pytest.mark.parametrize(
    "wrong",
    [
        GroupScenario(members=1),
        GroupScenario(members=129),
        GroupScenario(ops=0),
        GroupScenario(thefts=-1),
        GroupScenario(partitions=-1),
        GroupScenario(patience=1.5),
        GroupScenario(messages=-1),
    ],
)
def test_what_is_no_group_is_refused(wrong: GroupScenario) -> None:
    with pytest.raises(ConfigError):
        wrong.check()


def test_the_rest_is_fine() -> None:
    GroupScenario().check()
