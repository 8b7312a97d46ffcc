"""Griffe's extension: how our docstrings differ from what its Google parser reads.

A section ``Example:`` is code, ``model, arms: text`` explains two arguments at once, and a comment
behind a field of a class explains it.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension

SEVERAL = re.compile(
    r"^(?P<indent>[ ]{4})(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)+): (?P<text>.*(?:\n[ ]{5,}.*)*)",
    re.MULTILINE,
)


def readable(docstring: str) -> str:
    r"""Return a docstring as the parser expects it.

    Example:
        >>> print(readable("One line.\n\nArgs:\n    a, b: numbers.\n\nExample:\n    ..."))
        One line.
        <BLANKLINE>
        Args:
            a: numbers.
            b: numbers.
        <BLANKLINE>
        Examples:
            ...
    """
    docstring = re.sub(r"^Example:$", "Examples:", docstring, flags=re.MULTILINE)
    return SEVERAL.sub(
        lambda found: "\n".join(
            f"{found['indent']}{name}: {found['text']}" for name in found["names"].split(", ")
        ),
        docstring,
    )


class Docstrings(Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called once for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
        elif obj.is_attribute and obj.parent.is_class and "  # " in (obj.source or ""):
            comment = re.sub("# noqa.*|^noqa.*", "", obj.source.partition("  # ")[2]).strip()
            obj.docstring = Docstring(comment, parent=obj, lineno=obj.lineno)
