"""Small changes of a Python file, each of which a test should notice.

Docstrings, annotations, `Literal`s, f-strings and what is raised (the texts of messages) stay as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tests.mutants.reaching import first_line

COMPARED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<", "<=", ">="),
    ast.LtE: ("<=", "<", ">"),
    ast.Gt: (">", ">=", "<="),
    ast.GtE: (">=", ">", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
"""Each operator as it is written, then what it becomes."""
CALCULATED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
SPOKEN = {"print", "warn", "echo", "notice", "notify"}
"""Functions whose arguments are texts for people."""
DESCRIBED = {"description", "help", "title", "doc"}
"""Named arguments that are."""
NAME = re.compile(r"[\w.\-/*]+")
"""Strings that are changed: names of files, keys and choices, no sentences."""

Spot = tuple[int, int]


@dataclass(frozen=True)
class Change:
    """`old`, which stands at the offset `start` of the file, becomes `new`."""

    line: int
    start: int
    old: str
    new: str
    function: int | None
    """The first line of the innermost function around it, decorators counted; None: of a module or class."""

    def __str__(self) -> str:
        return f"{_one_line(self.old)} -> {_one_line(self.new)}"

    def applied(self, source: str) -> str:
        """The file with the change."""
        end = self.start + len(self.old)
        assert source[self.start : end] == self.old, f"line {self.line} is another one now"
        return source[: self.start] + self.new + source[end:]


def changes(source: str) -> list[Change]:
    """All of them, in the order of the text. Each leaves a file that Python can parse."""
    found = list(_Finder(source).walk(ast.parse(source), None))
    return sorted(found, key=lambda change: (change.start, change.old, change.new))


class _Finder:
    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def walk(self, node: ast.AST, function: int | None) -> Iterator[Change]:
        """Changes of a node and of all below it."""
        if _is_for_people(node):
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = first_line(node)
        for start, end, new in self._of(node):
            old = self.source[start:end]
            if old != new:
                yield Change(self._line(start), start, old, new, function)
        for child in _children(node):
            yield from self.walk(child, function)

    def _of(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """Offsets of what is replaced, and what stands there then."""
        yield from self._of_operator(node)
        yield from self._of_statement(node)
        match node:
            case ast.Constant():
                yield from ((*self._span(node), new) for new in _other_constants(node))
            case ast.IfExp():
                yield self._negated(node.test)
            case ast.comprehension():
                yield from (self._negated(condition) for condition in node.ifs)
            case ast.Call():
                yield from self._of_call(node)

    def _of_operator(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.Compare():
                pairs = zip([node.left, *node.comparators], node.comparators, node.ops, strict=False)
                for left, right, operator in pairs:
                    old, *others = COMPARED[type(operator)]
                    yield from (self._between(left, right, old, new) for new in others)
            case ast.BoolOp():
                old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in pairwise(node.values):
                    yield self._between(left, right, old, new)
            case ast.BinOp() if type(node.op) in CALCULATED and not (_is_text(node.left) or _is_text(node.right)):
                yield self._between(node.left, node.right, *CALCULATED[type(node.op)])
            case ast.AugAssign() if type(node.op) in CALCULATED:
                old, new = CALCULATED[type(node.op)]
                yield self._between(node.target, node.value, f"{old}=", f"{new}=")
            case ast.UnaryOp() if isinstance(node.op, ast.Not | ast.USub):
                yield (*self._span(node), self._text(node.operand))

    def _of_statement(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """Those without which the others can still run are left out."""
        match node:
            case ast.If() | ast.While():
                yield self._negated(node.test)
            case (
                ast.Raise()
                | ast.AugAssign()
                | ast.Expr(value=ast.Call() | ast.Await())
                | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            ):
                yield (*self._span(node), "pass")
            case ast.Break():
                yield (*self._span(node), "continue")
            case ast.Continue():
                yield (*self._span(node), "break")

    def _negated(self, condition: ast.expr) -> tuple[int, int, str]:
        return (*self._span(condition), f"(not ({self._text(condition)}))")

    def _of_call(self, node: ast.Call) -> Iterator[tuple[int, int, str]]:
        """Two arguments swapped, one by name left out."""
        in_order = not (isinstance(node.func, ast.Name) and node.func.id in ("min", "max"))
        for place, (one, other) in enumerate(pairwise(node.args if in_order else [])):
            if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
                args = [*node.args[:place], other, one, *node.args[place + 2 :]]
                yield (*self._span(node), ast.unparse(ast.Call(node.func, args, node.keywords)))
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in DESCRIBED:
                keywords = [one for one in node.keywords if one is not keyword]
                yield (*self._span(node), ast.unparse(ast.Call(node.func, node.args, keywords)))

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> tuple[int, int, str]:
        """The operator between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        place = start + self.source[start:end].index(old)
        return place, place + len(old), new

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source[start:end]

    def _span(self, node: ast.expr | ast.stmt) -> Spot:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """ast counts columns in bytes of UTF-8."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def _line(self, start: int) -> int:
        return self.source.count("\n", 0, start) + 1


def _is_for_people(node: ast.AST) -> bool:
    """Or for the type checker."""
    match node:
        case (
            ast.JoinedStr()
            | ast.Import()
            | ast.ImportFrom()
            | ast.Expr(value=ast.Constant())
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.Subscript(value=ast.Name(id="Literal" | "Annotated"))
            | ast.Call(func=ast.Name(id="TypeVar"))
            | ast.Assign(targets=[ast.Name(id="__all__")])
        ):
            return True
        case ast.keyword(arg=name):
            return name in DESCRIBED
    return False


def _children(node: ast.AST) -> list[ast.AST]:
    """Those that may be changed."""
    found: list[ast.AST | None] = list(ast.iter_child_nodes(node))
    match node:
        case ast.Raise():
            found = []
        case ast.Assert():
            found = [node.test]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SPOKEN or name == "cast":
            found = []
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            found = [*node.args.defaults, *node.args.kw_defaults, *node.body]
        case ast.AnnAssign():
            found = [node.value]
        case ast.ClassDef():
            found = [*node.body]
    return [child for child in found if child is not None]


def _other_constants(node: ast.Constant) -> list[str]:
    match node.value:
        case bool():
            return [str(not node.value)]
        case int():
            return [str(node.value + 1), str(node.value - 1)] if node.value else ["1"]
        case float():
            return [repr(node.value * 2)] if node.value else ["1.0"]
        case str() if NAME.fullmatch(node.value):
            return [repr(f"X{node.value}")]
    return []


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _one_line(text: str) -> str:
    return " ".join(text.split())
