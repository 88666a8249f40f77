"""Places in a configuration, as people write them."""

from __future__ import annotations

import pytest

from linnet.node.config import NodeConfig, NodeSection, StorageSection
from linnet.node.config_problems import path_text, problems_of
from linnet.node.toml_lines import Path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("node", "listen", 0), "node.listen[0]"),
        (("streams", "a b", "degree"), 'streams."a b".degree'),
        (("storage", 2, "quota"), "storage[2].quota"),
    ],
)
def test_a_path_is_written_as_in_the_file(path: Path, text: str) -> None:
    assert path_text(path) == text


def test_all_that_is_wrong_is_told_at_once() -> None:
    twice = (StorageSection("weather"), StorageSection("weather"))
    found = problems_of(NodeConfig(node=NodeSection(bootstrap=("nobody",)), storage=twice))
    assert [path_text(problem.path) for problem in found] == ["node.bootstrap[0]", "storage[1].stream"]
