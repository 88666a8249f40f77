"""An HTTP interface of the node described as OpenAPI 3.1, from its operations and types themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from msgspec import Struct

from linnet.node.config_reference import meanings
from linnet.node.control_types import ErrorReply
from linnet.node.operation import Form, Operation
from linnet.node.operations import OPERATIONS

_REFERENCE = "#/components/schemas/{name}"
_ERRORS = {
    400: "The request is not understood.",
    401: "Over TCP: the token is missing or wrong.",
    403: "A rule of the stream stands against it.",
    404: "There is no such thing.",
    409: "The node declined.",
    413: "Larger than allowed.",
    415: "The request is not application/json.",
    429: "Too many at once.",
    503: "The node is stopping, or has no room at the moment.",
}


class Interface(Struct, frozen=True):
    """What is described."""

    title: str
    description: str
    server: str
    server_words: str
    operations: Sequence[Operation]
    error: type[Struct]
    """What every error is told as."""
    statuses: Callable[[Operation], Iterable[int]]
    """Statuses of errors that an operation may have."""
    words: dict[int, str]
    """What each of them means."""
    schemes: dict[str, Any]
    security: Callable[[Operation], list[dict[str, list[str]]]]


def document() -> dict[str, Any]:
    """The description of the control API."""
    return describe(
        Interface(
            "Linnet control API",
            "What programs of the same machine may ask a running node.",
            "http://localhost",
            "over the Unix socket in the node's home",
            OPERATIONS,
            ErrorReply,
            _statuses,
            _ERRORS,
            {"token": {"type": "http", "scheme": "bearer"}},
            lambda operation: [{}, {"token": []}],
        )
    )


def describe(interface: Interface) -> dict[str, Any]:
    """The whole description of an interface."""
    operations = interface.operations
    shapes = _shapes(interface)
    schemas, components = msgspec.json.schema_components(shapes, ref_template=_REFERENCE)
    schema_of = {id(shape): schema for shape, schema in zip(shapes, schemas, strict=True)}
    for shape in shapes:
        if isinstance(shape, type) and shape.__name__ in components:
            _explain(components[shape.__name__], meanings(shape))
    # Queries are told as parameters, one by one.
    queries = {
        operation.query: components.pop(operation.query.__name__)
        for operation in operations
        if operation.query is not None
    }
    paths: dict[str, Any] = {}
    for operation in operations:
        described = {
            "operationId": operation.name,
            "summary": operation.summary,
            "parameters": _parameters(operation, schema_of, queries),
            "responses": _responses(interface, operation, schema_of),
            "security": interface.security(operation),
        }
        if operation.body is not None:
            described["requestBody"] = {"required": True, "content": _content(schema_of[id(operation.body)])}
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": interface.title,
            "version": version("linnet"),
            "description": interface.description,
        },
        "servers": [{"url": interface.server, "description": interface.server_words}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": interface.schemes},
    }


def _shapes(interface: Interface) -> list[Any]:
    """Every type that is described, each once."""
    found: dict[int, Any] = {id(interface.error): interface.error}
    for operation in interface.operations:
        parameters = [shape for _, shape, _ in operation.parameters]
        for shape in (operation.reply, operation.body, operation.query, *parameters):
            if shape is not None:
                found[id(shape)] = shape
    return list(found.values())


def _explain(schema: dict[str, Any], words: dict[str, str]) -> None:
    for name, each in schema.get("properties", {}).items():
        if words.get(name):
            each.setdefault("description", words[name])


def _parameters(
    operation: Operation, schema_of: dict[int, Any], queries: dict[type[Struct], dict[str, Any]]
) -> list[dict[str, Any]]:
    told = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": meaning,
            "schema": schema_of[id(shape)],
        }
        for name, shape, meaning in operation.parameters
    ]
    if operation.query is not None:
        query = queries[operation.query]
        told += [
            {
                "name": name,
                "in": "query",
                "required": name in query.get("required", ()),
                "description": schema.get("description", ""),
                "schema": _without_null(schema),
            }
            for name, schema in query["properties"].items()
        ]
    return told


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """What a query can say: a parameter that is null is left out."""
    kept = {key: value for key, value in schema.items() if key not in ("anyOf", "description", "default")}
    for each in schema.get("anyOf", ()):
        if each.get("type") != "null":
            kept.update(each)
    if schema.get("default") is not None:
        kept["default"] = schema["default"]
    return kept


def _statuses(operation: Operation) -> Iterable[int]:
    always = (400, 401, 415, 503) if operation.body is not None else (400, 401, 503)
    return (*always, *operation.errors)


def _responses(interface: Interface, operation: Operation, schema_of: dict[int, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        str(operation.status): {
            "description": operation.summary,
            "content": _content(schema_of[id(operation.reply)], operation.form),
        }
    }
    for status in sorted(set(interface.statuses(operation))):
        told[str(status)] = {
            "description": interface.words[status],
            "content": _content(schema_of[id(interface.error)]),
        }
    return told


def _content(schema: Any, form: Form = Form.JSON) -> dict[str, Any]:  # noqa: ANN401 - JSON itself
    return {form.value: {"schema": schema}}
