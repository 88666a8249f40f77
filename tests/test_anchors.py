"""Seeded simulations do what they did: the quick ones of `scripts/anchors.py`; the rest is run by hand."""

from __future__ import annotations

import importlib.util
import json
import sys
from types import ModuleType

import pytest

from tests.conftest import SOAK
from tests.test_layout import ROOT

KEPT: dict[str, dict[str, object]] = json.loads((ROOT / "tests" / "anchors.json").read_text())
QUICK = ("names", "edge")


@pytest.fixture(scope="module")
def anchors() -> ModuleType:
    spec = importlib.util.spec_from_file_location("anchors", ROOT / "scripts" / "anchors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["anchors"] = module
    spec.loader.exec_module(module)
    return module


def test_every_anchor_is_kept(anchors: ModuleType) -> None:
    assert list(KEPT) == list(anchors.ANCHORS)


@pytest.mark.parametrize("name", KEPT if SOAK else QUICK)
def test_a_seeded_simulation_does_what_it_did(anchors: ModuleType, name: str) -> None:
    assert anchors.measure(name) == KEPT[name]
