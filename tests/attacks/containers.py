"""Finds every container that can grow: in the source by type, and in a running machine by looking."""

from __future__ import annotations

import ast
import re
import types
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import linnet

SOURCE = Path(linnet.__file__).parent
PACKAGES = (
    "api", "content", "core", "delivery", "edge", "event", "groups", "identity", "machine", "names", "net",
    "node", "overlay", "peer", "places", "rooms", "store", "streams", "trace", "wire",
)  # fmt: skip
"""What runs inside a node."""

_GROWABLE = re.compile(
    r"\b(dict|list|set|deque|Counter|defaultdict|OrderedDict|bytearray|array|MutableMapping|MutableSequence)\b"
)
_MADE = {
    ast.Dict: "dict", ast.List: "list", ast.Set: "set",
    ast.DictComp: "dict", ast.ListComp: "list", ast.SetComp: "set",
}  # fmt: skip
_ENLARGE = {
    "add", "append", "appendleft", "extend", "extendleft", "insert", "setdefault", "update", "__setitem__",
}  # fmt: skip
_HARMLESS = {
    "all", "any", "bool", "dict", "enumerate", "filter", "frozenset", "isinstance", "iter", "len", "list",
    "map", "max", "min", "next", "reversed", "set", "sorted", "sum", "tuple", "zip", "bytes", "bisect_left",
    "bisect_right", "islice", "heappop", "type", "id", "Counter", "chain", "disjoint", "repr", "fromkeys",
}  # fmt: skip
"""Functions that take a container without keeping it."""
_READ = {
    "copy", "count", "difference", "disjoint", "get", "index", "intersection", "isdisjoint", "issubset",
    "issuperset", "items", "keys", "most_common", "union", "values", "clear", "discard", "pop", "popitem",
    "popleft", "remove", "find", "hex", "decode", "reverse", "sort",
}  # fmt: skip
"""Methods that do not enlarge a container."""
_INSIDE = {"get", "values", "items", "pop", "popleft", "copy"}
"""Methods that hand out what is inside."""


class Container(NamedTuple):
    """An attribute that holds a container."""

    module: str
    owner: str
    name: str
    type: str

    @property
    def key(self) -> tuple[str, str]:
        """The module and the attribute, as the table of budgets names them."""
        return self.module, f"{self.owner}.{self.name}"


@cache
def trees() -> dict[str, ast.Module]:
    """The modules that run inside a node."""
    paths = [path for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py"))]
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in paths}


@cache
def find_containers() -> tuple[Container, ...]:
    """Find the attributes whose type is a container that can grow, and that something enlarges later."""
    found: dict[tuple[str, str], Container] = {}
    for module, tree in trees().items():
        for each in ast.walk(tree):
            if isinstance(each, ast.ClassDef) and not _is_frozen(each):
                for name, declared in _attributes(each):
                    one = Container(module, each.name, name, declared)
                    if _GROWABLE.search(declared) and _is_enlarged(one):
                        found[one.key] = one
    return tuple(found.values())


def _is_frozen(owner: ast.ClassDef) -> bool:
    """Whether objects of a class are values: commands, answers, messages."""
    bases = {ast.unparse(base) for base in owner.bases}
    return "NamedTuple" in bases or any(
        each.arg == "frozen" and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in owner.keywords
    )


def _attributes(owner: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the attributes of a class with their types, as far as they are told or can be seen."""
    for each in owner.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            declared = ast.unparse(each.annotation)
            if not declared.startswith("ClassVar"):
                yield each.target.id, declared
    told: dict[str, str] = {}
    returns = {
        f"self.{each.name}": ast.unparse(each.returns)
        for each in ast.walk(owner)
        if isinstance(each, ast.FunctionDef) and each.returns is not None
    }
    for made in ast.walk(owner):
        if isinstance(made, ast.AnnAssign) and _is_own(made.target):
            told[made.target.attr] = ast.unparse(made.annotation)  # type: ignore[union-attr]
        elif isinstance(made, ast.Assign):
            for target in made.targets:
                values = [made.value]
                targets = [target]
                if isinstance(target, ast.Tuple) and isinstance(made.value, ast.Tuple):
                    targets, values = target.elts, made.value.elts
                for one, value in zip(targets, values, strict=False):
                    if _is_own(one):
                        told.setdefault(one.attr, _type_of(value, returns))  # type: ignore[attr-defined]
    yield from told.items()


def _is_own(target: ast.expr) -> bool:
    return (
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    )


def _type_of(value: ast.expr, returns: dict[str, str]) -> str:
    """Return the type of what an attribute is set to; `returns`: what the class's own methods return."""
    if isinstance(value, ast.Call):
        if ast.unparse(value.func) in returns:
            return returns[ast.unparse(value.func)]
        called = ast.unparse(value.func).removesuffix(".fromkeys")
        return (
            called
            if called in ("dict", "list", "set", "deque", "Counter", "bytearray", "OrderedDict")
            else ""
        )
    return _MADE.get(type(value), "")


@cache
def _uses() -> dict[str, list[tuple[str, ast.Attribute, tuple[ast.AST, ...]]]]:
    """Every use of an attribute: its module, and what stands around it, the innermost first."""
    declared = [
        each for tree in trees().values() for each in ast.walk(tree) if isinstance(each, ast.ClassDef)
    ]
    growable = {name for each in declared for name, told in _attributes(each) if _GROWABLE.search(told)}
    uses: dict[str, list[tuple[str, ast.Attribute, tuple[ast.AST, ...]]]] = {}

    def visit(module: str, node: ast.AST, around: tuple[ast.AST, ...]) -> None:
        if isinstance(node, ast.Attribute) and node.attr in growable:
            uses.setdefault(node.attr, []).append((module, node, around))
        for child in ast.iter_child_nodes(node):
            visit(module, child, (node, *around))

    for module, tree in trees().items():
        visit(module, tree, ())
    return uses


def _is_enlarged(one: Container) -> bool:
    """Whether anything but the making of its owner may enlarge a container; in doubt, yes."""
    is_nested = len(_GROWABLE.findall(one.type)) > 1
    return any(
        (one.module == module or not one.name.startswith("_"))
        and not _is_making(around, one)
        and _enlarges(node, around, is_nested)
        for module, node, around in _uses().get(one.name, ())
    )


def _is_making(around: tuple[ast.AST, ...], one: Container) -> bool:
    function = next(
        (each for each in around if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)), None
    )
    return function is not None and function.name in ("__init__", "__post_init__", "__new__")


def _enlarges(node: ast.expr, around: tuple[ast.AST, ...], is_nested: bool) -> bool:  # noqa: C901 - by case
    """Whether a use of a container may enlarge it, or lets somebody else do so."""
    outer = around[0]
    match outer:
        case ast.Attribute(attr=method) if outer.value is node:
            if method in _ENLARGE:
                return True
            if method in _READ:
                return is_nested and method in _INSIDE and _enlarges(outer, around[1:], False)
            return False
        case ast.Call(func=func):
            if func is node:  # `container.method(...)`, from the case above
                return len(around) > 1 and _enlarges(outer, around[1:], is_nested)
            return ast.unparse(func).rpartition(".")[2] not in _HARMLESS
        case ast.Subscript(value=value) if value is node:
            if isinstance(outer.ctx, ast.Store):
                return True
            return is_nested and _enlarges(outer, around[1:], False)
        case ast.AugAssign(target=target, op=ast.Add() | ast.BitOr() | ast.Mult()) if target is node:
            return True
        case ast.Assign(targets=targets, value=value):
            if value is node:
                return True
            return any(each is node for each in targets) and not _is_empty(value)
        case ast.AnnAssign(target=target, value=value):
            return value is node or (target is node and value is not None and not _is_empty(value))
        case ast.Tuple() | ast.List():
            return len(around) > 1 and isinstance(around[1], ast.Assign)
        case ast.Return() | ast.Yield() | ast.NamedExpr() | ast.keyword() | ast.Lambda() | ast.IfExp():
            return True
        case ast.For() | ast.comprehension():
            return is_nested
        case _:
            return False


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Dict(keys=inside) | ast.List(elts=inside):
            return not inside
        case ast.Call(args=args):
            return not args
        case ast.Constant():
            return True
        case _:
            return False


class Held(NamedTuple):
    """The containers of one attribute in a running machine."""

    largest: int
    """The elements of the largest of them, with those of containers in it."""
    total: int
    """The elements of all of them."""
    ids: frozenset[int]
    """Which objects they are: an attribute may share the container of another."""


def measure(root: object) -> dict[tuple[str, str], Held]:
    """Measure every container of the objects that can be reached from one."""
    sizes: dict[tuple[str, str], dict[int, int]] = {}
    seen: dict[int, object] = {}
    waiting: list[object] = [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, bytes | str | int | float | type | types.ModuleType | None) or id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, types.FunctionType):
            waiting += [cell.cell_contents for cell in one.__closure__ or () if _is_full(cell)]
        elif isinstance(one, types.MethodType):
            waiting.append(one.__self__)
        elif isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple | set | frozenset | deque):
            waiting += one
        if type(one).__module__.startswith("linnet."):
            for owner, name, value in _fields(one):
                if isinstance(value, dict | list | set | deque | bytearray):
                    sizes.setdefault((owner, name), {})[id(value)] = _size(value)
                waiting.append(value)
    return {key: Held(max(each.values()), sum(each.values()), frozenset(each)) for key, each in sizes.items()}


def _is_full(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _fields(one: object) -> Iterator[tuple[str, str, object]]:
    """Yield the attributes of an object, with the module in which their class is, and its name."""
    names: dict[str, None] = dict.fromkeys(getattr(one, "__dict__", ()))
    if isinstance(one, msgspec.Struct):
        names |= dict.fromkeys(one.__struct_fields__)
    for base in type(one).__mro__:
        slots = base.__dict__.get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else tuple(slots))
    for name in names:
        try:
            value = getattr(one, name)
        except AttributeError:
            continue
        kind: Any = type(one)
        owner = _owner(kind, name)
        module = owner.__module__.removeprefix("linnet.").replace(".", "/")
        path = f"{module}.py" if (SOURCE / f"{module}.py").exists() else f"{module}/__init__.py"
        yield path, f"{owner.__name__}.{name}", value


@cache
def _declared() -> dict[tuple[str, str], frozenset[str]]:
    """The attributes that each class of our source declares."""
    return {
        (module, each.name): frozenset(name for name, _ in _attributes(each))
        for module, tree in trees().items()
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef)
    }


@cache
def _owner(kind: Any, name: str) -> type:  # noqa: ANN401 - a type
    """The class that declares an attribute: the object's own, or one that it inherits from."""
    found: type = kind
    for base in found.__mro__:
        module = base.__module__.removeprefix("linnet.").replace(".", "/") + ".py"
        if name in _declared().get((module, base.__name__), ()):
            return base
    return found


def _size(value: object) -> int:
    match value:
        case dict():
            return len(value) + sum(map(_size, value.values()))
        case list() | deque() | set():
            return len(value) + sum(map(_size, value))
        case bytearray():
            return len(value)
        case _:
            return 0
