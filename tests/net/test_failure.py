from __future__ import annotations

from linnet.core.errors import LinnetError, LocalError
from linnet.core.ids import PeerId
from linnet.core.inputs import Received
from linnet.core.reasons import Reason
from linnet.net.failure import DriverStopped, LinkFailure, MachineFailed


def test_a_link_failure_has_a_reason_for_programs_and_words_for_people() -> None:
    failure = LinkFailure(Reason.WRONG_KEY, "another key answers at tls://[::1]:7700")
    assert (failure.reason, failure.detail) == (Reason.WRONG_KEY, "another key answers at tls://[::1]:7700")
    assert str(failure) == "wrong_key: another key answers at tls://[::1]:7700"
    assert isinstance(failure, LinnetError)


def test_a_failed_machine_names_the_input_and_nothing_that_people_wrote() -> None:
    event = Received(PeerId(bytes(32)), b"dear diary")
    failure = MachineFailed(event, ValueError("a bug"))
    assert str(failure) == "handling Received raised ValueError: a bug"
    assert failure.input_type == "Received"


def test_asking_a_node_that_does_not_run_is_the_callers_mistake() -> None:
    assert issubclass(DriverStopped, LocalError)
    assert not issubclass(MachineFailed, LocalError), "a bug is not"
