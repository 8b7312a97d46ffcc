"""The layers of the package, read from the sources: `python tests/test_layers.py` draws them.

Imports inside functions and under TYPE_CHECKING count like any other.
"""

import ast
import functools
import graphlib
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "driftbandit"

LAYERS = """
_version errors arrays machine
gaussian
model kalman riccati steady_state system families
actions
policies
theory
statistics io
report
result simulation
identify
agent
studies replays
paper leaderboard
advice
adapters
cli
"""
"""Rooms from low to high. A room imports from its own line and from the lines above it."""

FACES = {"cli", "adapters", "__main__"}
"""Rooms that may import the package itself, as users do."""

OLD_NAMES = {
    "sphere": "actions",
    "study": "studies",
    "plots": "report",
    "program_cache": "simulation",
}
"""Rooms that are about to be renamed or merged. This must end up empty."""

KNOWN: set[str] = set()
"""Violations that are still there, as the tests print them. This must end up empty."""

NAMED_TUPLE = {"_replace", "_asdict", "_fields", "_make"}
"""Public in spite of the underscore."""


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module by its name inside the package; a folder stands for its __init__."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text())
    return found


def room(module: str) -> str:
    """The folder, or the top-level module; the package's own __init__ is the empty name."""
    return module.partition(".")[0]


def layer(module: str) -> int:
    name = OLD_NAMES.get(room(module), room(module))
    for number, line in enumerate(LAYERS.split("\n")):
        if name in line.split():
            return number
    raise AssertionError(f"{name} is in no layer; add it to LAYERS")


def imported(module: str) -> list[tuple[str, list[str]]]:
    """The modules of this package that a module imports, each with the names it takes from it."""
    found: list[tuple[str, list[str]]] = []
    for node in ast.walk(modules()[module]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found += [(inside(name), []) for name in names if is_ours(name)]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: import by the full name, not relatively"
            if not is_ours(node.module or ""):
                continue
            home = inside(node.module or "")
            for alias in node.names:
                whole = f"{home}.{alias.name}".lstrip(".")
                found.append((whole, []) if whole in modules() else (home, [alias.name]))
    return found


def is_ours(name: str) -> bool:
    return name.partition(".")[0] == "driftbandit"


def inside(name: str) -> str:
    return name.partition(".")[2]


def arrows() -> dict[str, set[str]]:
    """Which modules each module imports. The lazy names of the package's __init__ do not count."""
    return {
        module: {target for target, _ in imported(module)} - {module}
        for module in modules()
        if module
    }


def upward() -> set[str]:
    """Imports of a higher layer, and of the package as a whole."""
    found = set()
    for module, targets in arrows().items():
        if module == "__main__":
            continue
        for target in targets:
            if target == "":
                if room(module) not in FACES:
                    found.add(f"{module} imports the package itself")
            elif layer(target) > layer(module):
                found.add(f"{module} imports {target}, which is higher")
    return found


def private() -> set[str]:
    """Names with an underscore that one module takes from another."""
    found = set()
    for module, tree in modules().items():
        for target, names in imported(module):
            found |= {f"{module} imports {target}.{n}" for n in names if is_private(n)}
        own = defined(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
                found.add(f"{module} reaches {ast.unparse(node)}")
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE


def defined(tree: ast.Module) -> set[str]:
    """What a module defines itself: functions, classes, variables, and attributes of self."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def cycle() -> list[str]:
    """The modules of one import cycle, in order; empty where there is none."""
    try:
        graphlib.TopologicalSorter(arrows()).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_every_room_is_in_a_layer():
    rooms = {room(module) for module in modules()} - {"", "__main__"}
    listed = LAYERS.split()
    assert len(listed) == len(set(listed))
    assert rooms - set(OLD_NAMES) <= set(listed)
    assert set(OLD_NAMES) <= rooms, "renamed: delete it from OLD_NAMES"


def test_no_module_imports_a_higher_layer_or_reaches_what_is_private():
    found = upward() | private()
    assert sorted(found - KNOWN) == []
    assert sorted(KNOWN - found) == [], "fixed: delete these from KNOWN"


def test_no_import_cycles():
    assert cycle() == []


def test_the_sources_are_read_whole():
    """Imports inside functions and under TYPE_CHECKING are seen."""
    tree = ast.parse(
        "if TYPE_CHECKING:\n    from driftbandit import errors\ndef f():\n    import driftbandit.cli"
    )
    assert any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))
    assert "errors" in arrows()["model"]
    assert len(modules()) > 100 or not OLD_NAMES


def drawn() -> str:
    """The rooms and their imports as a Mermaid graph; arrows that others imply are left out."""
    direct: dict[str, set[str]] = {}
    for module, targets in arrows().items():
        rooms = {room(target) for target in targets} - {"", room(module)}
        direct.setdefault(room(module), set()).update(rooms)
    direct.pop("__main__", None)

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(direct.get(start, ()))
        while waiting:
            if (name := waiting.pop()) not in seen:
                seen.add(name)
                waiting += direct.get(name, ())
        return seen

    lines = ["graph TD"]
    for name in sorted(direct, key=layer, reverse=True):
        below = direct[name]
        implied = {far for near in below for far in reach(near)}
        lines += [f"  {name} --> {target}" for target in sorted(below - implied, key=layer)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(drawn())
