"""Who imports whom in ngp, and where names are defined; read from the source, with nothing imported.

A module imports those that its import statements name, save under TYPE_CHECKING; a name that a package imports
for type checkers alone, being lazy, is imported from where these find it. What importlib imports isn't seen, and a
package's ``__init__`` isn't imported along with a module inside it. A cycle is a set of modules that all reach one
another. A room is a name at the top level of src/ngp with all that is in it; `ngp` is the ``__init__``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Trees = dict[str, ast.Module]
Graph = dict[str, set[str]]
Definition = tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]


def is_for_types(node: ast.AST) -> bool:
    """Whether what stands under this is for type checkers only."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def executed(node: ast.AST, functions: bool) -> Iterator[ast.AST]:
    """What runs when a module is imported, and with `functions` also what may run later."""
    for child in node.orelse if isinstance(node, ast.If) and is_for_types(node) else ast.iter_child_nodes(node):
        if functions or not isinstance(child, FUNCTIONS):
            yield child
            yield from executed(child, functions)


def origins(trees: Trees, module: str, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str, str]]:
    """For every name that is imported from somewhere: that module, the name there and the name here."""
    inside = not any(other.startswith(f"{module}.") for other in trees)  # a package's first dot is itself
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            above = f"{module}.".rsplit(".", node.level + inside)[0] if node.level else ""
            base = ".".join(filter(None, [above, node.module]))
            yield from ((base, alias.name, alias.asname or alias.name) for alias in node.names)


def import_graph(trees: Trees, functions: bool) -> Graph:
    """Modules by the module that imports them."""
    lazy, graph = dict[str, str](), Graph()
    for module, tree in trees.items():
        hidden = [node for block in filter(is_for_types, tree.body) for node in ast.walk(block)]
        lazy |= {f"{module}.{here}": base for base, _, here in origins(trees, module, hidden)}
    for module, tree in trees.items():
        nodes = list(executed(tree, functions))
        found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for base, there, _ in origins(trees, module, nodes):
            full = f"{base}.{there}"
            found.add(full if full in trees else lazy.get(full, base))
        graph[module] = (found & trees.keys()) - {module}
    return graph


def between_rooms(graph: Graph) -> Graph:
    """Rooms by the room that imports them."""
    room = {module: module.split(".")[1] if "." in module else module for module in graph}
    rooms: Graph = {name: set() for name in sorted(room.values())}
    for module, others in graph.items():
        rooms[room[module]] |= {room[other] for other in others} - {room[module]}
    return rooms


def cycles(graph: Graph) -> list[str]:
    """Sets of nodes that all reach one another, each as a line."""
    reach: Graph = {}
    for start in graph:
        reach[start], waiting = set(), list(graph[start])
        while waiting:
            if (node := waiting.pop()) not in reach[start]:
                reach[start].add(node)
                waiting.extend(graph[node])
    return sorted({" ".join(sorted(m for m in reach[n] if n in reach[m])) for n in graph if n in reach[n]})


def tangle(trees: Trees) -> dict[str, Any]:
    """Who imports whom."""
    graph, whole = import_graph(trees, False), import_graph(trees, True)
    rooms, all_rooms = between_rooms(graph), between_rooms(whole)
    later = {name: {f"({other})" for other in all_rooms[name] - rooms[name]} for name in rooms}
    return {
        "names at the top level": [name for name in rooms if name != "ngp" and not name.startswith("_")],
        "  and with a leading _": [name for name in rooms if re.match("_[^_]", name)],
        "import cycles": cycles(graph),
        "  with imports in functions": cycles(whole),
        "import cycles between rooms": cycles(rooms),
        "  rooms, with imports in functions": cycles(all_rooms),
        "imports between rooms": sum(map(len, rooms.values())),
        "  only in functions": sum(map(len, later.values())),
        "what rooms import (only in functions)": {n: " ".join([*sorted(rooms[n]), *sorted(later[n])]) for n in rooms},
    }


def find(trees: Trees, module: str, name: str) -> Definition | None:
    """Find where a class or a function is defined, through the modules that import it."""
    if module not in trees:
        return None
    for node in trees[module].body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name:
            return module, node
    imported = origins(trees, module, ast.walk(trees[module]))
    return next((find(trees, base, there) for base, there, here in imported if here == name), None)


def lineage(trees: Trees, definition: Definition | None) -> Iterator[ast.ClassDef]:
    """A class, and the classes of ngp that it inherits from."""
    if definition and isinstance(definition[1], ast.ClassDef):
        yield definition[1]
        for base in definition[1].bases:
            name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
            yield from lineage(trees, find(trees, definition[0], name))
