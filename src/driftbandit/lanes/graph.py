"""Stage 1: trace a function of one run, and turn its jaxpr into a graph of small arrays.

    step --jax.make_jaxpr--> jaxpr --walk--> graph

A jaxpr is JAX's list of the operations ("primitives") that a function performs. A node of the graph
is one array: an input, a constant, or a primitive applied to other nodes.

    arms @ z + 1    →    input arms ─┐
                                     ├─ dot_general ─┐
                         input z ────┘               ├─ add ── output
                         constant 1 ─────────────────┘

Calls are inlined, short scans are unrolled, equal nodes are one node, and what no output needs is
dropped. A primitive that is missing from the table (`primitives`) raises `Unsupported`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import Literal

LONGEST_SCAN = 32
"""Scans with more steps are not unrolled but refused."""
DTYPES = ("bool", "int32", "int64", "uint32", "uint64", "float32", "float64")
MOST_NODES = 4000
"""A longer program would take LLVM many seconds."""
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr"} | dict.fromkeys(
    ("custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
)
"""Primitives that only call another jaxpr, and the parameter that holds it."""


Step = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
"""``step(own, state, round, stream) -> state, results``."""


class Unsupported(NotImplementedError):
    """The function needs something that lanes cannot compile; XLA can."""


class Node:
    """One array of the program: a primitive applied to other nodes, an input or a constant."""

    __slots__ = ("args", "dtype", "op", "params", "shape", "size")

    def __init__(
        self, op: str, params: Mapping[str, Any], args: Iterable[Node], shape: Any, dtype: Any
    ) -> None:
        self.op, self.params, self.args = op, params, tuple(args)
        self.shape, self.dtype = tuple(shape), str(dtype)
        if self.dtype not in DTYPES:
            raise Unsupported(f"numbers of type {dtype}")
        self.size = math.prod(self.shape)

    def __repr__(self) -> str:
        return f"{self.op}:{self.dtype}{list(self.shape)}"


class Graph(NamedTuple):
    """What is computed in one round."""

    inputs: list[Node]
    outputs: list[Node]
    order: list[Node]
    """Every node that an output needs, inputs excepted; each after its arguments."""

    def text(self) -> str:
        """All of it: equal texts are equal graphs."""
        number = {node: place for place, node in enumerate([*self.inputs, *self.order])}
        lines = [
            f"{number[node]} {node} {[number[arg] for arg in node.args]} {_described(node.params)}"
            for node in number
        ]
        return "\n".join([*lines, str([number[node] for node in self.outputs])])

    def used(self) -> list[bool]:
        """For every input whether anything depends on it."""
        read = {*self.outputs, *(arg for node in self.order for arg in node.args)}
        return [node in read for node in self.inputs]


def traced(step: Step, own: Any, state: Any, stream: Any, *, known: frozenset[str]) -> Graph:
    """The graph of a step; its outputs are the leaves of the new state, then of the results.

    Args:
        step: for one run and one round, in operations that JAX can trace.
        own, state, stream: trees of arrays; shapes and types alone matter.
        known: names of the primitives that the later stages can write.
    """
    given = own, state, np.uint32(0), stream
    closed, (after, _) = jax.make_jaxpr(step, return_shape=True)(*given)
    kinds: list[Any] = [variable.aval for variable in closed.jaxpr.invars]
    for leaf, kind in zip(jax.tree.leaves(given), kinds, strict=True):
        if leaf.dtype != kind.dtype:  # the program would read other bytes than the caller gives
            raise TypeError(f"JAX reads {leaf.dtype} as {kind.dtype}: see jax.enable_x64")
    inputs = [Node("input", {"number": n}, (), k.shape, k.dtype) for n, k in enumerate(kinds)]
    before, after = (_kinds(tree) for tree in (state, after))
    if before != after:
        raise TypeError(f"the step changes the kind of its state from {before} to {after}")
    builder = _Builder(known)
    outputs = builder.walk(closed.jaxpr, closed.consts, inputs)
    return Graph(inputs, outputs, needed(builder.order, outputs))


def _kinds(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves]


def needed(order: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """Those nodes of an order that the outputs need."""
    found, kept = set(outputs), []
    for node in reversed(order):
        if node in found:
            found.update(node.args)
            kept.append(node)
    return kept[::-1]


def _described(params: Mapping[str, Any]) -> str:
    """Parameters as text; of arrays every bit."""
    exact = {k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in params.items()}
    return repr(sorted(exact.items()))


class _Builder:
    """Makes nodes; asked for the same one again, it gives the first."""

    def __init__(self, known: frozenset[str]) -> None:
        self.known = known
        self.order: list[Node] = []
        self._made: dict[Any, Node] = {}

    def node(
        self, op: str, params: Mapping[str, Any], args: Sequence[Node], shape: Any, dtype: Any
    ) -> Node:
        folded = self._folded(op, params, args, shape, dtype)
        if folded is not None:
            return self.constant(folded)
        key = op, _described(params), tuple(map(id, args)), tuple(shape), str(dtype)
        return self._kept(key, lambda: Node(op, params, args, shape, dtype))

    def constant(self, value: Any) -> Node:
        value = np.asarray(value)
        key = "constant", value.tobytes(), value.shape, str(value.dtype)
        return self._kept(
            key, lambda: Node("constant", {"value": value}, (), value.shape, value.dtype)
        )

    def _kept(self, key: Any, make: Callable[[], Node]) -> Node:
        if key not in self._made:
            if len(self.order) == MOST_NODES:
                raise Unsupported(f"more than {MOST_NODES} arrays in a round")
            self._made[key] = make()
            self.order.append(self._made[key])
        return self._made[key]

    def _folded(
        self, op: str, params: Mapping[str, Any], args: Sequence[Node], shape: Any, dtype: Any
    ) -> np.ndarray | None:
        """The value of a node that only picks or casts numbers of a constant."""
        if len(args) != 1 or args[0].op != "constant":
            return None
        value = args[0].params["value"]
        if op == "pick":
            return value[params["row"]]
        if op in ("squeeze", "expand_dims", "reshape"):
            return value.reshape(shape)
        if op == "convert_element_type" and (
            value.dtype.kind != "f" or np.dtype(dtype).kind == "f"
        ):
            return value.astype(dtype)
        return None

    def walk(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Node]) -> list[Node]:
        """The nodes of a jaxpr's results."""
        found = dict(zip(jaxpr.constvars, map(self.constant, consts), strict=True))
        found |= zip(jaxpr.invars, args, strict=True)

        def read(atom: Any) -> Node:
            if isinstance(atom, Literal):
                kind: Any = atom.aval
                return self.constant(np.asarray(atom.val, kind.dtype))
            return found[atom]

        for equation in jaxpr.eqns:
            name, params = equation.primitive.name, equation.params
            given = [read(atom) for atom in equation.invars]
            if name == "reshape" and params["dimensions"] is not None:
                raise Unsupported("reshape that permutes axes")
            if name in CALLS:
                inner = params[CALLS[name]]
                results = self.walk(inner.jaxpr, inner.consts, given)
            elif name == "scan":
                results = self._unrolled(equation, given)
            elif name == "cond":
                results = self._chosen(params["branches"], given)
            elif name == "stack":
                results = [self._stacked(given, params["axis"])]
            elif name in self.known:
                result = equation.outvars[0].aval
                results = [self.node(name, params, given, result.shape, result.dtype)]
            else:
                raise Unsupported(f"{name} is not in the table of primitives")
            found |= zip(equation.outvars, results, strict=True)
        return [read(atom) for atom in jaxpr.outvars]

    def _chosen(self, branches: Sequence[Any], given: Sequence[Node]) -> list[Node]:
        """A choice between two branches: both are computed, and one result is taken."""
        which, *args = given
        if len(branches) != 2:
            raise Unsupported("a choice between more than two branches")
        test = self.node("convert_element_type", {}, [which], (), "bool")
        pairs = zip(*(self.walk(b.jaxpr, b.consts, args) for b in branches), strict=True)
        found = []
        for cases in pairs:
            shape, kind = cases[0].shape, cases[0].dtype
            spread = self.node(
                "broadcast_in_dim", {"broadcast_dimensions": ()}, [test], shape, "bool"
            )
            found.append(self.node("select_n", {}, [spread, *cases], shape, kind))
        return found

    def _unrolled(self, equation: Any, given: Sequence[Node]) -> list[Node]:
        """A scan, step by step: (fixed, carry, rows) -> (carry, rows of results).

        Which is which shows in the ranks, whatever JAX's version calls it: rows have one more axis
        outside of the scan than inside.
        """
        params = equation.params
        length, inner = params["length"], params["jaxpr"]
        if length > LONGEST_SCAN:
            raise Unsupported(f"a scan over {length} steps; at most {LONGEST_SCAN} are unrolled")

        def rows_among(outside: Sequence[Any], inside: Sequence[Any]) -> int:
            pairs = zip(outside, inside, strict=True)
            return sum(len(o.aval.shape) > len(i.aval.shape) for o, i in pairs)

        scanned = rows_among(equation.invars, inner.jaxpr.invars)
        carried = len(equation.outvars) - rows_among(equation.outvars, inner.jaxpr.outvars)
        fixed = len(given) - carried - scanned
        constants, carry = given[:fixed], list(given[fixed : fixed + carried])
        rows = given[fixed + carried :]
        collected = []
        steps = range(length)[:: -1 if params["reverse"] else 1]
        for step in steps:
            here = [self.node("pick", {"row": step}, [x], x.shape[1:], x.dtype) for x in rows]
            results = self.walk(inner.jaxpr, inner.consts, [*constants, *carry, *here])
            carry = results[:carried]
            collected.append(results[carried:])
        if params["reverse"]:
            collected.reverse()
        return [*carry, *(self._stacked(each, 0) for each in zip(*collected, strict=True))]

    def _stacked(self, arrays: Sequence[Node], axis: int) -> Node:
        """Arrays of one shape side by side along a new axis."""
        shape, kind = list(arrays[0].shape), arrays[0].dtype
        thin, wide = ([*shape[:axis], n, *shape[axis:]] for n in (1, len(arrays)))
        params = {"dimensions": (axis,)}
        parts = [self.node("expand_dims", params, [x], thin, kind) for x in arrays]
        return self.node("concatenate", {"dimension": axis}, parts, wide, kind)
