"""What a large log comes to, in few numbers."""

from __future__ import annotations

from tests.lab.studies.places.views import SCALE


def test_the_state_at_a_message_takes_all_stages_before_it() -> None:
    assert SCALE.state_seconds == 8.0
    assert SCALE.seconds("taken") == 2.0
    assert SCALE.seconds("nowhere") == 0.0
