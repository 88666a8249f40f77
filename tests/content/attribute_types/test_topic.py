"""A topic is there or not."""

from __future__ import annotations

from linnet.content.attribute_types.text import TOPIC, Topic


def test_a_topic_is_a_name_and_nothing_else() -> None:
    assert TOPIC.text == ""
    assert TOPIC.exact
    assert TOPIC.covers(Topic())
    assert TOPIC.merged(Topic()) == TOPIC
