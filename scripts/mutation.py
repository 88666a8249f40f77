"""Mutants of a module: small changes in the bodies of its functions, each of which ought to be wrong."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNTOUCHED = {"annotation", "returns", "decorator_list", "args", "pattern", "type_comment"}
"""Fields of nodes that are not behaviour of the body, or cannot be replaced by an expression."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = ast.expr | ast.stmt


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the bytes from `start` to `end` become `new`."""

    file: str
    line: int
    function: tuple[str, int]
    """Qualified name of the outermost function, and the line where it begins."""
    start: int
    end: int
    new: str
    operator: str

    def apply(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def is_valid(self, source: bytes) -> bool:
        """Say whether the changed source is Python: a rare place cannot hold what was put there."""
        try:
            compile(self.apply(source), self.file, "exec", dont_inherit=True)
        except SyntaxError:
            return False
        return True

    def diff(self, source: bytes) -> str:
        """Return the lines that go and the lines that come."""
        old, new = (each.decode().splitlines() for each in (source, self.apply(source)))
        _, _, *lines = difflib.unified_diff(old, new, n=0, lineterm="")
        return "\n".join(each for each in lines if not each.startswith("@@"))


def find_mutants(file: str, source: bytes) -> list[Mutant]:
    """List all mutants of a module, function by function."""
    starts = [0]
    for each in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(each))
    found = []
    for name, function in _find_functions(ast.parse(source)):
        first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        for place, operator, other in _find_changes(function):
            text = ast.unparse(ast.fix_missing_locations(other))
            if isinstance(other, ast.expr) and not isinstance(other, ast.Name):
                text = f"({text})"
            start = starts[place.lineno - 1] + place.col_offset
            end = starts[(place.end_lineno or 0) - 1] + (place.end_col_offset or 0)
            found.append(Mutant(file, place.lineno, (name, first), start, end, text, operator))
    return found


def _find_functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Functions that lie in no other function, with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        else:
            inner = f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix
            yield from _find_functions(child, inner)


def _find_changes(function: Function) -> Iterator[tuple[Place, str, ast.AST]]:
    """Places in a function, names of operators that fit there, and what they put there."""
    body = [statement for statement in function.body if not _is_docstring(statement)]
    returns = ast.unparse(function.returns) if function.returns is not None else ""
    for node in (node for statement in body for node in _find_nodes(statement)):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            yield node.test, "negate", ast.UnaryOp(ast.Not(), node.test)
        elif isinstance(node, ast.Return) and node.value is not None and returns == "bool":
            yield node.value, "return", ast.UnaryOp(ast.Not(), node.value)
        elif isinstance(node, ast.expr | ast.stmt):
            for operator, other in _change(node):
                yield node, operator, other
    if returns == "None" and len(body) > 1 and not isinstance(body[0], ast.Raise):
        yield body[0], "return", ast.Return()


def _find_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that may be changed: no docstrings, annotations or patterns, and nothing of what is raised."""
    yield node
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("cast", "assert_never")
    ):
        return
    for name, value in ast.iter_fields(node):
        if name in UNTOUCHED and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_docstring(child):
                yield from _find_nodes(child)


def _is_docstring(node: ast.AST) -> bool:
    """Return whether a node is the text of a function, or of the attribute before it."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _change(node: Place) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            yield "compare", ast.Compare(left, [COMPARISONS[type(op)]()], comparators)
        case ast.BoolOp(op=op, values=values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(number) | float(number)):
            yield "constant", ast.Constant(number + 1)
        case ast.Constant(value=str(text) | bytes(text)) if text:
            yield "constant", ast.Constant(text[:-1])
        case ast.Name(id=name) if name in CALLS:
            yield "call", ast.Name(CALLS[name])
        case ast.Continue() | ast.Break():
            yield "loop", ast.Break() if isinstance(node, ast.Continue) else ast.Continue()
        case ast.Expr(value=ast.Await() | ast.Call()) if "assert_never(" not in ast.unparse(node):
            yield "drop", ast.Pass()
        case (
            ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            | ast.AugAssign(target=ast.Attribute() | ast.Subscript())
            | ast.Delete(targets=[ast.Attribute() | ast.Subscript()])
        ):
            yield "drop", ast.Pass()
