"""Who has a copy of a component: every arm, every group of arms, or all arms together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from driftbandit import errors
from driftbandit.structure.base import Component
from driftbandit.structure.kinds import Factors
from driftbandit.system import Name


class Copy(NamedTuple):
    """One copy of a component."""

    component: int
    label: str  # of the arm or group it belongs to; "" if it is shared
    arms: tuple[int, ...]  # which arms read it


def copies_of(component: Component, index: int, names: Sequence[Name], groups: Any) -> list[Copy]:
    """The copies of the component at a place in the structure."""
    k = len(names)
    if isinstance(component.loadings, tuple) and len(component.loadings) != k:
        problem = f"has {len(component.loadings)} numbers for {k} arms"
        raise component.wrong("loadings", problem, "give one per arm, in the order of the names")
    if isinstance(component, Factors) and component.reads and len(component.reads) != k:
        problem = f"has {len(component.reads)} rows for {k} arms"
        raise component.wrong("reads", problem, "give one row per arm, in the order of the names")
    if component.scope == "arm":
        return [Copy(index, str(name), (arm,)) for arm, name in enumerate(names)]
    if component.scope == "shared":
        return [Copy(index, "", tuple(range(k)))]
    if groups is None:
        raise component.wrong("scope", "is group, and no groups are known", "give groups")
    if not isinstance(groups, Mapping):
        problem = f"has type {type(groups).__name__}"
        raise errors.InvalidInput("groups", problem, "give a mapping from arms to groups")
    known = {str(name): str(group) for name, group in groups.items()}  # 1 and "1" are one arm
    for name in names:
        if str(name) not in known:
            raise errors.InvalidInput("groups", f"lack the arm {name!r}", "give each arm's group")
    of = [known[str(name)] for name in names]
    return [
        Copy(index, label, tuple(arm for arm in range(k) if of[arm] == label))
        for label in dict.fromkeys(of)
    ]
