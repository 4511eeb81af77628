"""Code that tells which of its functions are entered: to run, for a mutant, the tests that can notice it."""

from __future__ import annotations

import ast


def telling(source: str, file: str) -> str:
    """The file, each of whose functions begins by adding `file:line` to `reached.functions`."""
    lines = source.split("\n")
    for node in sorted(_functions(ast.parse(source)), key=lambda node: node.body[0].lineno, reverse=True):
        first = node.body[1] if _is_docstring(node.body[0]) and len(node.body) > 1 else node.body[0]
        tell = f"__import__('reached').functions.add({f'{file}:{first_line(node)}'!r})"
        line = _first_line_of_statement(first)
        before = lines[line - 1].encode()[: first.col_offset].decode()
        if not before.strip():
            lines[line - 1] = f"{before}{tell}\n{lines[line - 1]}"
        elif not _is_docstring(first):
            lines[line - 1] = f"{before}{tell}; {lines[line - 1][len(before) :]}"
    return "\n".join(lines)


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Of a function, decorators counted."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _first_line_of_statement(node: ast.stmt) -> int:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return first_line(node)
    return node.lineno


def _functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
