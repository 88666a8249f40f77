from __future__ import annotations

from linnet.node.client import ControlClient
from linnet.node.control import Control
from linnet.node.operations import OPERATIONS


def test_each_operation_is_served_and_can_be_called() -> None:
    for operation in OPERATIONS:
        assert callable(getattr(Control, operation.name))
        assert callable(getattr(ControlClient, operation.name))


def test_names_and_places_are_unique() -> None:
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)
    assert len({(operation.method, operation.path) for operation in OPERATIONS}) == len(OPERATIONS)
    assert all(operation.path.startswith("/v1/") for operation in OPERATIONS)
