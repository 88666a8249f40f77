"""``linnet api``: every operation of the control API by its name, as its command describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from linnet.cli.options import with_examples
from linnet.cli.output import say, say_json, say_table
from linnet.cli.running_node import Session

if TYPE_CHECKING:
    from linnet.api.operations import Operation

Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The operation; without one, all are listed.")
]
Given = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Its fields: text as it is, anything else as JSON."),
]
Help = Annotated[
    bool, typer.Option("--help", "-h", help="Show this, or the fields of an operation, and exit.")
]


@with_examples(
    "linnet api",
    "linnet api set_petname --help",
    "linnet api set_petname name=alice person=lp1…",
    "linnet api list_names | jq .zone",
)
def api(
    context: typer.Context,
    name: Name = None,
    given: Given = None,
    wants_help: Help = False,
    *,
    session: Session,
) -> None:
    """Ask the running node for anything that its control API can do; the answer is JSON."""
    if name is None:
        if wants_help:
            say(context.get_help())
        else:
            _list(session.as_json)
        return
    operation = _find(name)
    if wants_help:
        _describe(operation)
        return

    command = _command(operation, given or [])
    with session.open_node() as node:
        say_json(node.ask(command))


def _list(as_json: bool) -> None:
    from linnet.api.operations import OPERATIONS

    if as_json:
        say_json([{"name": each.name, "summary": each.summary} for each in OPERATIONS])
        return
    say_table(("name", "summary"), [(each.name, each.summary) for each in OPERATIONS])


def _find(name: str) -> Operation:
    from difflib import get_close_matches

    from linnet.api.operations import OPERATIONS
    from linnet.cli.exits import ExitCode, Failure

    by_name = {each.name: each for each in OPERATIONS}
    wanted = name.replace("-", "_")
    if wanted not in by_name:
        near = get_close_matches(wanted, by_name, 1)
        hint = f"did you mean {near[0]}?" if near else "linnet api lists them"
        raise Failure(f"there is no operation {name[:80]!r}; {hint}", ExitCode.USAGE)
    return by_name[wanted]


def _describe(operation: Operation) -> None:
    from inspect import cleandoc

    import msgspec

    from linnet.api.field_docs import field_docs

    say(f"{operation.method} {operation.path}\n\n{cleandoc(operation.command.__doc__ or '')}\n")
    words = field_docs(operation.command)
    rows = []
    for each in (*operation.in_path, *operation.fields):
        is_needed = each.default is msgspec.NODEFAULT
        default = "needed" if is_needed else msgspec.json.encode(each.default).decode()
        rows.append((each.told, default, _kind(each.form.shape), words.get(each.name, "")))
    say_table(("field", "default", "type", "meaning"), rows)


def _kind(shape: Any) -> str:  # noqa: ANN401 - any type
    """Describe a type in the words of JSON, with its limits."""
    import msgspec

    [schema], _ = msgspec.json.schema_components([shape])
    return _words(schema)


def _words(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_words, schema["anyOf"])))
    if "description" in schema:
        return str(schema["description"])
    if "items" in schema:
        return f"list of {_words(schema['items'])}"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    limits = [
        f"{key} {schema[key]}" for key in ("minimum", "maximum", "minLength", "maxLength") if key in schema
    ]
    return " ".join([str(schema.get("type", "anything")), *limits])


def _command(operation: Operation, given: list[str]) -> Any:  # noqa: ANN401 - a command of any sort
    import msgspec

    from linnet.core.errors import BadText

    told: dict[str, Any] = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign:
            raise BadText(f"{each[:80]!r} is no KEY=VALUE; linnet api {operation.name} --help lists the keys")
        told[key] = _value(value)
    path = {each.told: told.pop(each.told) for each in operation.in_path if each.told in told}
    try:
        return operation.read(
            msgspec.convert(path, operation.path_shape, strict=False),
            msgspec.convert(told, operation.shape, strict=False),
        )
    except msgspec.ValidationError as error:
        raise BadText(f"{error}; linnet api {operation.name} --help lists the fields") from error


def _value(text: str) -> Any:  # noqa: ANN401 - JSON itself
    """Parse lists and objects as JSON; all else stays text, from which numbers and flags are read later."""
    import msgspec

    if text[:1] not in ("[", "{"):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
