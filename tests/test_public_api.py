"""Every public name has a docstring and an example that runs.

What counts as an example: a `>>>` line in the docstring, which pytest runs (`--doctest-modules`).
For a method or property, the example of the class, or of a base class that has it, counts too, if
it uses it as `.name`. Constants, type
aliases and protocols need no example, only a docstring or comment at their definition. Attributes
that are fields of a dataclass or named tuple are explained where the class is defined.
"""

import ast
import doctest
import functools
import importlib
import importlib.util
import inspect
import re
import types
from pathlib import Path

import pytest

import driftbandit as db

MORE = ("errors", "monitoring", "simulation")
ADAPTERS = {"adapters.gymnasium": "gymnasium", "adapters.river": "river"}
"""Public by their full name; each needs a library of its own."""
needs_everything = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("jax", "httpx", "matplotlib", "pyarrow"))),
    reason="needs all extras",
)


def public_names():
    """Every public object that is not a module, by its full name; each object once."""
    modules = [db, *(importlib.import_module(f"driftbandit.{name}") for name in MORE)]
    for name, library in ADAPTERS.items():
        if importlib.util.find_spec(library):
            modules.append(importlib.import_module(f"driftbandit.{name}"))
    found, seen = {}, set()
    for module in modules:  # grows: the modules that a module lists are public, too
        for name in exported(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                modules += [value] if value not in modules else []
            elif id(value) not in seen or is_constant(value):
                seen.add(id(value))
                found[f"{module.__name__}.{name}"] = value
    return found


def exported(module):
    """The names in ``__all__``; of `errors`, which has many checks for the package, its errors."""
    if module.__name__ == "driftbandit.errors":
        own = vars(module).items()
        return [n for n, x in own if inspect.isclass(x) and issubclass(x, Exception)]
    return module.__all__


def is_constant(value):
    """A value, a type alias or a protocol: something without a docstring of its own to run."""
    return getattr(value, "_is_protocol", False) or not (
        isinstance(value, type) or inspect.isroutine(value) or hasattr(value, "__wrapped__")
    )


def members(cls):
    """The public methods and properties that this package defines for a class, by name."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(("driftbandit", __name__)):
            for name, value in vars(base).items():
                if not name.startswith("_") and is_member(value):
                    found[name] = value
                else:
                    found.pop(name, None)
    for field in getattr(cls, "__dataclass_fields__", ()):
        found.pop(field, None)  # a field whose default is a function
    return found


def is_member(value):
    if isinstance(value, property | functools.cached_property | classmethod | staticmethod):
        return True
    return inspect.isfunction(value) or hasattr(value, "__wrapped__")


def examples(text):
    """The lines of the examples in a docstring."""
    return "\n".join(one.source for one in doctest.DocTestParser().get_examples(text or ""))


def uses(cls, name):
    """Whether the example of a class, or of a base class with this member, uses it as `.name`."""
    texts = [examples(base.__doc__) for base in cls.__mro__ if base is cls or hasattr(base, name)]
    return any(re.search(rf"\.{re.escape(name)}\b", text) for text in texts)


def faults(name, value):
    """What is missing at a class or function, and at the members of a class."""
    text = inspect.getdoc(value) if not inspect.isclass(value) else value.__doc__
    if not text or (inspect.isclass(value) and text.startswith(f"{value.__name__}(")):
        yield f"{name}: no docstring"  # dataclasses and named tuples write their signature
    elif not examples(text):
        yield f"{name}: no example"
    for member, found in members(value).items() if inspect.isclass(value) else ():
        if not (own := inspect.getdoc(found)):
            yield f"{name}.{member}: no docstring"
        elif not examples(own) and not uses(value, member):
            yield f"{name}.{member}: no example, and the class's example does not use .{member}"


def is_explained(module, name):
    """Whether a docstring or a comment stands at the definition of a constant."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    lines, tree = source.splitlines(), ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in {one.name for one in node.names}:
            return is_explained(importlib.import_module(node.module), name)
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_docstring(node) is not None
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if name in assigned(node):
            own = lines[node.lineno - 1 : node.end_lineno]
            text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            above = lines[node.lineno - 2].startswith("#")
            return text or above or any("  # " in line for line in own)
    return False


def assigned(node):
    """The names that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {one.id for target in targets if target for one in ast.walk(target) if is_name(one)}


def is_name(node):
    return isinstance(node, ast.Name)


@needs_everything
def test_every_public_name_has_a_docstring_and_an_example():
    found = [
        fault
        for name, value in public_names().items()
        if not is_constant(value)
        for fault in faults(name, value)
    ]
    assert not found, f"{len(found)} to write:\n" + "\n".join(found)


@needs_everything
def test_every_constant_is_explained_where_it_is_defined():
    found = [
        name
        for name, value in public_names().items()
        if is_constant(value) and name != "driftbandit.__version__"
        if not is_explained(importlib.import_module(name.rpartition(".")[0]), name.split(".")[-1])
    ]
    assert not found, f"{len(found)} to explain:\n" + "\n".join(found)


@needs_everything
def test_the_public_names_are_those_that_users_meet():
    found = public_names()
    for name in (
        "driftbandit.Agent",
        "driftbandit.simulate",
        "driftbandit.simulation.Options",
        "driftbandit.monitoring.ArmHealth",
        "driftbandit.actions.sphere.best",
        "driftbandit.statistics.paired",
        "driftbandit.errors.Conflict",
    ):
        assert name in found
    assert len(found) > 130
    assert not any("._" in name for name in found if not name.endswith("__version__"))
    modules = [value for value in found.values() if isinstance(value, types.ModuleType)]
    assert modules == []


class Documented:
    """A class whose example uses one of its members.

    Example:
        >>> Documented().used
        1
    """

    @property
    def used(self):
        """One."""
        return 1

    @functools.cached_property
    def own(self):
        """Two.

        Example:
            >>> Documented().own
            2
        """
        return 2


class Inherits(Documented):
    """A class that adds nothing: the example of its base shows its members.

    Example:
        >>> isinstance(Inherits(), Documented)
        True
    """


class Bad:
    """A class without an example; to mention .useless is not one."""

    @property
    def unseen(self):
        """Three."""

    def useless(self):
        """Nothing."""

    @classmethod
    def silent(cls):
        pass

    def _private(self):
        pass


def bad_function():
    pass


def test_the_check_finds_what_is_missing():
    assert list(faults("Documented", Documented)) == []
    assert list(faults("Inherits", Inherits)) == []
    assert list(faults("Bad", Bad)) == [
        "Bad: no example",
        "Bad.unseen: no example, and the class's example does not use .unseen",
        "Bad.useless: no example, and the class's example does not use .useless",
        "Bad.silent: no docstring",
    ]
    assert list(faults("bad_function", bad_function)) == ["bad_function: no docstring"]
    assert list(faults("exported", exported)) == ["exported: no example"]


EXPLAINED = 3
"""A constant with a docstring."""
COMMENTED = 4  # with a comment

bare = 5


@pytest.mark.parametrize(("name", "found"), [("EXPLAINED", 1), ("COMMENTED", 1), ("bare", 0)])
def test_the_check_of_constants_finds_what_is_missing(name, found):
    here = types.SimpleNamespace(__file__=__file__)
    assert is_explained(here, name) == bool(found)
