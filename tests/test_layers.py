"""The layers of the package, read from its sources; `python tests/test_layers.py` draws them.

Imports inside functions and under TYPE_CHECKING count like any other.
"""

import ast
import functools
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "driftbandit"

LAYERS = """
_version errors arrays machine program_cache
gaussian
model contexts kalman riccati steady_state system families priced_arm
structure
actions
policies
theory
statistics io
report lanes
result simulation
identify monitoring
agent
studies replays
paper leaderboard
advice
adapters service
cli
""".strip().splitlines()
"""Rooms from low to high. A room imports from its own line and from the lines above it."""

FACES = {"adapters", "cli"}
"""Rooms that may import the package itself, as users do."""

NAMED_TUPLE = {"_replace", "_asdict", "_fields", "_make"}
"""Public in spite of the underscore."""


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module by its name inside the package; a folder's name stands for its __init__."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text())
    return found


def room(module: str) -> str:
    """The folder or top-level module; the package's own __init__ has an empty name."""
    return module.partition(".")[0]


def layer(module: str) -> int:
    name = room(module)
    return next((number for number, line in enumerate(LAYERS) if name in line.split()), -1)


def imports(tree: ast.Module) -> list[tuple[str, str]]:
    """The modules of this package that a module imports, each with the name taken from it."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"write the full name, not {ast.unparse(node)}"
            found += [(node.module or "", alias.name) for alias in node.names]
    ours = [(name.split(".", 1), taken) for name, taken in found]
    inside = [("".join(parts[1:]), taken) for parts, taken in ours if parts[0] == "driftbandit"]
    submodules = {place: f"{place[0]}.{place[1]}".lstrip(".") for place in inside}
    return [(submodules[p], "") if submodules[p] in modules() else p for p in inside]


@functools.cache
def arrows() -> dict[str, set[str]]:
    """The modules that each module imports, without the lazy table of the package's __init__."""
    trees = {name: tree for name, tree in modules().items() if name not in ("", "__main__")}
    return {name: {target for target, _ in imports(tree)} - {name} for name, tree in trees.items()}


def upward() -> set[str]:
    """Imports of a higher layer, and of the package itself."""
    found = set()
    for module, targets in arrows().items():
        higher = {target for target in targets if target and layer(target) > layer(module)}
        found |= {f"{module} imports {target}, which is higher" for target in higher}
        if "" in targets and room(module) not in FACES:
            found.add(f"{module} imports the package itself")
    return found


def private() -> set[str]:
    """Names with an underscore that one module takes from another of this package."""
    found = set()
    for module, tree in modules().items():
        owners = {home for home, name in imports(tree) if is_private(name)}
        own = defined(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
                owners.add(ast.unparse(node.value))
        owners -= {"self", "cls", "super()", "os", "sys"}
        found |= {f"{module} reaches private names of {owner}" for owner in owners}
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE


def defined(tree: ast.Module) -> set[str]:
    """Functions, classes, variables and attributes that a module defines itself."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph.get(start, ()))
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += graph.get(name, ())
    return seen


def cycles() -> set[str]:
    """Groups of modules that import each other, directly or not; large ones by their rooms."""
    reach = {module: reachable(module, arrows()) for module in arrows()}
    found = set()
    for module in arrows():
        group = {other for other in reach[module] if module in reach.get(other, ())}
        if group:
            names = group if len(group) <= 4 else {room(name) for name in group}
            found.add("cycle: " + " ".join(sorted(names)))
    return found


def test_every_room_is_in_one_layer():
    listed = " ".join(LAYERS).split()
    rooms = {room(module) for module in arrows()}
    assert len(listed) == len(set(listed))
    assert sorted(rooms - set(listed)) == []
    assert sorted(set(listed) - rooms) == []


def test_no_upward_import_no_cycle_and_nothing_private_across_modules():
    assert sorted(upward() | private() | cycles()) == []


def test_lazy_imports_are_seen():
    code = """
if TYPE_CHECKING:
    from driftbandit import errors
def lazily():
    import driftbandit.arrays
    from driftbandit.model import LGDS
    from driftbandit import System
"""
    found = imports(ast.parse(code))
    assert sorted(found) == [("", "System"), ("arrays", ""), ("errors", ""), ("model", "LGDS")]
    assert layer("errors") < layer("model") < layer("cli")


def drawn() -> str:
    """The rooms and their imports as a Mermaid graph, without arrows that others imply."""
    graph: dict[str, set[str]] = {}
    for module, targets in arrows().items():
        below = {room(target) for target in targets} - {"", room(module)}
        graph.setdefault(room(module), set()).update(below)
    lines = ["graph TD"]
    for name in sorted(graph, key=layer, reverse=True):
        implied = {far for near in graph[name] for far in reachable(near, graph)}
        shown = sorted(graph[name] - implied, key=layer, reverse=True)
        lines += [f"  {name} --> {target}" for target in shown]
    return "\n".join(lines)


if __name__ == "__main__":
    print(drawn())
