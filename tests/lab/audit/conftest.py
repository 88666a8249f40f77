"""One small trace for the tests of the transforms, and one audit of real files for the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lab.audit.homes import Homes
from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import Oracle, Tale

from linnet.lab.audit.audit import Audited, audit
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.stages import Workshop

SEED = 7


@pytest.fixture(scope="session")
def tale() -> Tale:
    return Tale(SEED, steps=120)


@pytest.fixture(scope="session")
def oracle(tale: Tale) -> Oracle:
    return Oracle(tale.rows)


@pytest.fixture(scope="session")
def staged(spark: SparkSession, tale: Tale) -> Staged:
    return Staged(spark, tale.rows)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory, tale: Tale) -> Homes:
    """The same trace as the files of five nodes, two bad lines among them."""
    return Homes(tmp_path_factory.mktemp("homes"), tale.rows)


@pytest.fixture(scope="session")
def audited(
    spark: SparkSession, homes: Homes, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Audited, Path]:
    out = tmp_path_factory.mktemp("audit")
    return audit(Workshop(spark, out), [homes.folder], Parameters()), out
