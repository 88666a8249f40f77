"""The world that live courses strike: what is done to it is what happens in it."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.node.killed_world import STARTS, until
from tests.node.open_streams import OpenStreams

PATIENCE = 60.0


def test_a_node_that_is_killed_before_its_turn_to_start_comes_back_where_others_reach_it(
    tmp_path: Path,
) -> None:
    with OpenStreams(tmp_path, 1) as world:
        for _ in range(STARTS):
            world._starts.acquire()
        world.begin_start("ann")
        world.kill("ann")
        for _ in range(STARTS):
            world._starts.release()
        assert until(lambda: not world.is_doing("ann"), PATIENCE)
        assert not world.is_up("ann"), "the start that was overtaken did not notice"
        world.start("ann")
        here, _ = world._ports["ann"]
        socket.create_connection(("127.0.0.1", here), PATIENCE).close()


def test_a_node_moved_before_its_turn_to_start_is_at_its_new_address(tmp_path: Path) -> None:
    with OpenStreams(tmp_path, 1) as world:
        old, _ = world._ports["ann"]
        for _ in range(STARTS):
            world._starts.acquire()
        world.begin_start("ann")
        world.kill("ann")
        world.move("ann")
        for _ in range(STARTS):
            world._starts.release()
        assert until(lambda: not world.is_doing("ann"), PATIENCE)
        world.start("ann")
        here, _ = world._ports["ann"]
        assert here != old
        socket.create_connection(("127.0.0.1", here), PATIENCE).close()
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", old)) != 0
