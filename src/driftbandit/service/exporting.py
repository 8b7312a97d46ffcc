"""An experiment's log as a table that `fit` and `replay` read."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from driftbandit import errors
from driftbandit.service.transaction import Transaction


def columns_of(events: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns round, arm, reward and, with contexts, one for each feature.

    A decision without a reward has the reward None. Arms that were offered by their features, and
    are not the experiment's own, are left out: the log would not say what they are.

    Example:
        >>> columns_of([
        ...     {"kind": "decided", "decision": 0, "round": 0, "arm": "a"},
        ...     {"kind": "decided", "decision": 1, "round": 1, "arm": "b"},
        ...     {"kind": "rewarded", "decision": 0, "reward": 1.5},
        ... ])
        {'round': [0, 1], 'arm': ['a', 'b'], 'reward': [1.5, None]}
    """
    found: dict[str, list[Any]] = {"round": [], "arm": [], "reward": []}
    row_of: dict[int, int] = {}
    names: list[Any] = []
    for event in events:
        kind = event["kind"]
        if kind == "created":
            system = event["settings"]["system"]
            names = list(system.get("names") or range(len(system["arms"])))
        elif kind == "decided" and "features" not in event:
            row_of[event["decision"]] = len(found["round"])
            found["round"].append(event["round"])
            found["arm"].append(event["arm"])
            found["reward"].append(None)
            for feature, value in (event.get("context") or {}).items():
                found.setdefault(feature, []).append(_of_arm(value, event["arm"], names))
        elif kind == "rewarded" and event["decision"] in row_of:
            row = row_of[event["decision"]]
            found["reward"][row] = _of_arm(event["reward"], found["arm"][row], names)
    return found


def _of_arm(value: Any, arm: Any, names: list[Any]) -> float:
    """The value of a feature, or the reward, of the arm that was played."""
    if isinstance(value, Mapping):
        return float(value[arm] if arm in value else value[str(arm)])
    return float(value[names.index(arm)] if isinstance(value, list) else value)


def parquet(transaction: Transaction, id: str) -> bytes | None:
    """The log of an experiment as a Parquet file; None: there is no such experiment."""
    if transaction.version(id) is None:
        return None
    with errors.needing("the log as Parquet"):
        import pyarrow
        from pyarrow import parquet as files
    columns = columns_of(transaction.events(id, 0))
    if any(isinstance(arm, str) for arm in columns["arm"]):
        columns["arm"] = [str(arm) for arm in columns["arm"]]
    schema = {"round": pyarrow.int64(), "reward": pyarrow.float64()}
    arrays = {name: pyarrow.array(column, schema.get(name)) for name, column in columns.items()}
    if not columns["arm"]:
        arrays["arm"] = pyarrow.array([], pyarrow.string())
    content = io.BytesIO()
    files.write_table(pyarrow.table(arrays), content)
    return content.getvalue()
