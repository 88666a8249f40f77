"""Commands that the node answers itself, before its machine: they need files, threads or settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from linnet.machine.commands import Command

R = TypeVar("R")
C = TypeVar("C", bound=Command[Any])
S = TypeVar("S")
Answer = Callable[[Any], Awaitable[Any]]


def answers(kind: type[C]) -> Callable[[Callable[[S, C], Awaitable[Any]]], Callable[[S, C], Awaitable[Any]]]:
    """Mark the method that answers commands of this type."""

    def mark(method: Callable[[S, C], Awaitable[Any]]) -> Callable[[S, C], Awaitable[Any]]:
        method.answers = kind  # type: ignore[attr-defined] # functions can have attributes
        return method

    return mark


def answers_of(*services: object) -> dict[type[Command[Any]], Answer]:
    """Return the method for each command type. Raises `TypeError` if two methods answer one type."""
    found: dict[type[Command[Any]], Answer] = {}
    for service in services:
        for name in dir(type(service)):
            kind = getattr(getattr(type(service), name), "answers", None)
            if kind is None:
                continue
            if kind in found:
                raise TypeError(f"two answers to {kind.__name__}")
            found[kind] = getattr(service, name)
    return found
