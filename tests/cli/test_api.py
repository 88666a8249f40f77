"""``linnet api``: every operation, with no code for any of them."""

from __future__ import annotations

import json

from tests.cli.shell import Linnet

from linnet.api.operations import OPERATIONS


def test_all_operations_are_listed_and_described(shell: Linnet) -> None:
    listed = json.loads(shell.run("api", "--json").stdout)
    assert [each["name"] for each in listed] == [each.name for each in OPERATIONS]
    for each in OPERATIONS:
        said = shell.ok("api", each.name, "--help")
        assert f"{each.method} {each.path}" in said
        assert all(field.told in said for field in each.fields)


def test_a_node_is_asked_and_answers_json(running: Linnet) -> None:
    status = json.loads(running.ok("api", "report_status"))
    said = json.loads(running.ok("api", "publish", "stream=api", 'texts=["one","two"]'))
    assert (said["first"], len(said["ids"])) == (0, 2)
    named = json.loads(running.ok("api", "set-petname", "name=me", f"person={status['person']}"))
    assert {"name": "me", "person": status["person"]} in named["petnames"]
    assert json.loads(running.ok("api", "remove_petname", "name=me")) == {"petnames": []}


def test_what_is_mistyped_is_told(running: Linnet) -> None:
    assert "did you mean set_petname" in running.fails(2, "api", "set_petnam")
    assert "missing required field `person`" in running.fails(2, "api", "set_petname", "name=x")
    assert "is no person id" in running.fails(2, "api", "set_petname", "name=x", "person=bob")
    assert "is no KEY=VALUE" in running.fails(2, "api", "publish", "weather")
    assert "unknown field `color`" in running.fails(2, "api", "publish", "stream=x", "color=red")
    assert "<= 3600" in running.fails(2, "api", "publish", "stream=x", "confirm=3601")
