"""Describes an HTTP interface of the node as OpenAPI 3.1, from its operations and types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from importlib.metadata import version
from typing import Any

import msgspec
import msgspec.inspect
from msgspec import Struct

from linnet.api.errors import ErrorReply
from linnet.api.field_docs import field_docs
from linnet.api.json_forms import fields_of
from linnet.api.operations import ACK_MEANING, DESCRIPTION_PATH, Operation

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


Shape = object
"""A type that msgspec can describe."""


class Media(StrEnum):
    """The media type of an answer."""

    JSON = "application/json"
    LINES = "application/x-ndjson"


class HttpOperation(Struct, frozen=True):
    """The description of one HTTP operation."""

    name: str
    method: str
    path: str
    summary: str
    reply: Shape
    query: type[Struct] | None = None
    body: type[Struct] | None = None
    parameters: tuple[tuple[str, Shape, str], ...] = ()
    """The parameters in the path: name, type, meaning."""
    form: Media = Media.JSON
    status: int = 200
    errors: tuple[int, ...] = ()
    """Statuses of errors beyond those that every operation may have."""


class Interface(Struct, frozen=True):
    """The description of an HTTP interface."""

    title: str
    description: str
    server: str
    server_words: str
    operations: Sequence[HttpOperation]
    error: type[Struct]
    """The type of every error."""
    statuses: Callable[[HttpOperation], Iterable[int]]
    """Returns the error statuses that an operation may have."""
    words: dict[int, str]
    """The meaning of each status."""
    schemes: dict[str, Any]
    security: Callable[[HttpOperation], list[dict[str, list[str]]]]


DESCRIPTION = HttpOperation("openapi", "GET", DESCRIPTION_PATH, "This description.", dict)


def described(operation: Operation) -> HttpOperation:
    """Return the description of an operation of the control API."""
    words = field_docs(operation.command)
    is_lines = operation.item is not None
    is_get = operation.method == "GET"
    return HttpOperation(
        operation.name,
        operation.method,
        operation.path,
        operation.summary,
        operation.answer.shape if operation.item is None else operation.item.shape,
        operation.shape if is_get and (operation.fields or is_lines) else None,
        operation.shape if not is_get and operation.fields else None,
        tuple((each.told, each.form.shape, words.get(each.name, "")) for each in operation.in_path),
        form=Media.LINES if is_lines else Media.JSON,
        status=operation.status,
        errors=(403, 404, 409, 413, 429),
    )


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the description of the control API, which is itself one of its operations."""
    return describe(
        Interface(
            "Linnet control API",
            "What programs of the same machine may ask a running node.",
            "http://localhost",
            "over the Unix socket in the node's home",
            (*map(described, operations), DESCRIPTION),
            ErrorReply,
            _statuses,
            _ERRORS,
            {"token": {"type": "http", "scheme": "bearer"}},
            lambda operation: [{}, {"token": []}],
        )
    )


def describe(interface: Interface) -> dict[str, Any]:
    """Return the whole OpenAPI description of an interface."""
    operations = interface.operations
    shapes = _shapes(interface)
    schemas, components = msgspec.json.schema_components(shapes, ref_template=_REFERENCE)
    schema_of = {id(shape): schema for shape, schema in zip(shapes, schemas, strict=True)}
    named = _structs(shapes, components)
    for name, kind in named.items():
        _explain(components[name], kind)
    # Queries are described as parameters, one by one.
    queries = {
        kind: components.pop(name)
        for name, kind in named.items()
        if any(kind is operation.query for operation in operations)
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
    """Return every type to describe, each once."""
    found: dict[int, Any] = {id(interface.error): interface.error}
    for operation in interface.operations:
        parameters = [shape for _, shape, _ in operation.parameters]
        for shape in (operation.reply, operation.body, operation.query, *parameters):
            if shape is not None:
                found[id(shape)] = shape
    return list(found.values())


def _structs(shapes: list[Any], components: dict[str, Any]) -> dict[str, type[Struct]]:
    """Return every struct to describe, by the name of its schema."""
    found: dict[str, type[Struct]] = {}
    waiting: list[Any] = list(msgspec.inspect.multi_type_info(shapes))
    seen: set[int] = set()
    while waiting:
        info = waiting.pop()
        if id(info) in seen:
            continue
        seen.add(id(info))
        if isinstance(info, msgspec.inspect.StructType):
            whole = f"{info.cls.__module__}.{info.cls.__qualname__}"
            name = info.cls.__name__ if info.cls.__name__ in components else re.sub(r"[^\w.\-]", "_", whole)
            found[name] = info.cls
            waiting += [field.type for field in info.fields]
        for inner in ("types", "item_types"):
            waiting += getattr(info, inner, ())
        waiting += [
            getattr(info, inner) for inner in ("item_type", "value_type", "type") if hasattr(info, inner)
        ]
    return found


def _explain(schema: dict[str, Any], kind: type[Struct]) -> None:
    """Add the docstrings below the fields to a schema."""
    source = getattr(kind, "twin_of", kind)
    words = field_docs(source)
    told = {each.told: words.get(each.name, "") for each in fields_of(source)}
    told["ack"] = told.get("ack") or ACK_MEANING
    for name, each in schema.get("properties", {}).items():
        if told.get(name):
            each.setdefault("description", told[name])


def _parameters(
    operation: HttpOperation, schema_of: dict[int, Any], queries: dict[type[Struct], dict[str, Any]]
) -> list[dict[str, Any]]:
    told = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": meaning or schema_of[id(shape)].get("description", ""),
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
    """Return the schema of a query parameter: instead of being null, it is left out."""
    kept = {key: value for key, value in schema.items() if key not in ("anyOf", "description", "default")}
    for each in schema.get("anyOf", ()):
        if each.get("type") != "null":
            kept.update(each)
    if schema.get("default") is not None:
        kept["default"] = schema["default"]
    return kept


def _statuses(operation: HttpOperation) -> Iterable[int]:
    always = (400, 401, 415, 503) if operation.body is not None else (400, 401, 503)
    return (*always, *operation.errors)


def _responses(interface: Interface, operation: HttpOperation, schema_of: dict[int, Any]) -> dict[str, Any]:
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


def _content(schema: Any, form: Media = Media.JSON) -> dict[str, Any]:  # noqa: ANN401 - JSON itself
    return {form.value: {"schema": schema}}
