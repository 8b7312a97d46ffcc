"""The table of primitives: what each writes for one number, or where a view finds its number.

There are three kinds.

    elementwise  add, sqrt, …         one number from one number of each argument
    views        transpose, slice, …  nothing is computed: at which index of the argument to look
    loops        products, sums, …    each has a function of its own in `loops`

A function here is given a writer ``w`` (`llvm.Writer` or `cuda.Writer`) and the node. To add a
primitive, add a line to `ELEMENTWISE` or `VIEWS`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from driftbandit.lanes import functions
from driftbandit.lanes.graph import Node, Unsupported

Value = Any
Writer = Any


def _same(op: str) -> Callable[..., Value]:
    """The writer's operation of this name, on numbers of the first argument's type."""

    def write(w: Writer, node: Node, *values: Value) -> Value:
        return w.apply(op, node.args[0].dtype, *values)

    return write


def extreme(sign: str) -> Callable[..., Value]:
    """max (``sign`` "gt") or min ("lt") of two numbers; not a number if one of them is not."""

    def write(w: Writer, dtype: str, x: Value, y: Value) -> Value:
        wins = w.apply(sign, dtype, x, y)
        if dtype.startswith("f"):
            wins = w.apply("or", "bool", wins, w.apply("ne", dtype, x, x))
        return w.select(wins, x, y)

    return write


larger, smaller = extreme("gt"), extreme("lt")


def product_added(w: Writer, dtype: str, x: Value, y: Value, z: Value) -> Value:
    """x·y + z, rounded once."""
    if dtype.startswith("f"):
        return w.apply("fma", dtype, x, y, z)
    return w.apply("add", dtype, w.apply("mul", dtype, x, y), z)


def _divided(op: str) -> Callable[..., Value]:
    """x / y and its remainder; whole numbers as XLA has them, where processors stop or differ.

    x / 0 = −1 and x mod 0 = x; the lowest number divided by −1 is itself.
    """

    def write(w: Writer, node: Node, x: Value, y: Value) -> Value:
        kind = node.dtype
        if kind.startswith("f"):
            return w.apply(op, kind, x, y)
        zero, one, minus = (w.constant(v, kind) for v in (0, 1, -1))
        nothing = w.apply("eq", kind, y, zero)
        odd = nothing
        if kind.startswith("i"):
            opposite = w.apply("eq", kind, y, minus)
            odd = w.apply("or", "bool", nothing, opposite)
        found = w.apply(op, kind, x, w.select(odd, one, y))
        if kind.startswith("i"):
            found = w.select(opposite, w.apply("neg", kind, x) if op == "div" else zero, found)
        return w.select(nothing, minus if op == "div" else x, found)

    return write


def _sign(w: Writer, node: Node, x: Value) -> Value:
    kind = node.dtype
    zero, one, minus = (w.constant(v, kind) for v in (0, 1, -1))
    below = w.select(w.apply("lt", kind, x, zero), minus, x)  # x: zero, or not a number
    return w.select(w.apply("gt", kind, x, zero), one, below)


def _absolute(w: Writer, node: Node, x: Value) -> Value:
    kind = node.dtype
    if kind.startswith("f"):
        return w.apply("abs", kind, x)
    return w.select(w.apply("lt", kind, x, w.constant(0, kind)), w.apply("neg", kind, x), x)


def _power(w: Writer, node: Node, x: Value) -> Value:
    """xⁿ by squaring, as XLA does."""
    kind, left = node.dtype, abs(node.params["y"])
    result: Value = None
    square = x
    while left:
        if left & 1:
            result = square if result is None else w.apply("mul", kind, result, square)
        left >>= 1
        if left:
            square = w.apply("mul", kind, square, square)
    one = w.constant(1, kind)
    if result is None:
        return one
    return result if node.params["y"] > 0 else w.apply("div", kind, one, result)


def _real_power(w: Writer, node: Node, x: Value, y: Value) -> Value:
    """xʸ; a square root where y is known to be ½, as XLA does."""
    exponent = node.args[1]
    if exponent.op == "constant" and np.all(exponent.params["value"] == 0.5):
        return w.apply("sqrt", node.dtype, x)
    return functions.power(w, (node.args[0].dtype, exponent.dtype), x, y)


def _finite(w: Writer, node: Node, x: Value) -> Value:
    kind = node.args[0].dtype
    return w.apply("lt", kind, w.apply("abs", kind, x), w.constant(float("inf"), kind))


def _select(w: Writer, node: Node, which: Value, *cases: Value) -> Value:
    if len(cases) != 2 or node.args[0].dtype != "bool":
        raise Unsupported("select_n of more than two cases")
    return w.select(which, cases[1], cases[0])


def _fused(w: Writer, node: Node, x: Value, y: Value, z: Value) -> Value:
    """±x·y ± z, rounded once; `contraction` makes these."""
    if node.params["minus_product"]:
        x = w.apply("neg", node.dtype, x)
    if node.params["minus_sum"]:
        z = w.apply("neg", node.dtype, z)
    return w.apply("fma", node.dtype, x, y, z)


ELEMENTWISE: dict[str, Callable[..., Value]] = {
    **{name: _same(name) for name in ("add", "sub", "mul", "neg", "sqrt", "floor")},
    **{name: _same(name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    **{name: _same(name) for name in ("and", "or", "xor", "not")},
    **{name: _same(name) for name in ("shift_left", "shift_right_logical")},
    **{name: _divided(name) for name in ("div", "rem")},
    "fma": _fused,
    "max": lambda w, node, x, y: larger(w, node.dtype, x, y),
    "min": lambda w, node, x, y: smaller(w, node.dtype, x, y),
    "abs": _absolute,
    "sign": _sign,
    "square": lambda w, node, x: w.apply("mul", node.dtype, x, x),
    "integer_pow": _power,
    "pow": _real_power,
    "is_finite": _finite,
    "select_n": _select,
    "clamp": lambda w, node, low, x, high: smaller(
        w, node.dtype, larger(w, node.dtype, x, low), high
    ),
    "ceil": lambda w, node, x: w.apply(
        "neg", node.dtype, w.apply("floor", node.dtype, w.apply("neg", node.dtype, x))
    ),
    "rsqrt": lambda w, node, x: w.apply(
        "div", node.dtype, w.constant(1, node.dtype), w.apply("sqrt", node.dtype, x)
    ),
    "convert_element_type": lambda w, node, x: w.convert(x, node.args[0].dtype, node.dtype),
    "copy": lambda w, node, x: x,
    "log": lambda w, node, x: functions.log(w, node.dtype, x),
    "log1p": lambda w, node, x: functions.log1p(w, node.dtype, x),
    "exp": lambda w, node, x: functions.exp(w, node.dtype, x),
}


class Indices:
    """What views need of a writer."""

    plus: Callable[[Any, Any], Any]
    times: Callable[[Any, int], Any]
    divided: Callable[[Any, int], tuple[Any, Any]]

    def flat(self, shape: Sequence[int], index: Sequence[Any]) -> Any:
        """The place of an index in an array that is laid out row by row."""
        place: Any = 0
        for i, size in zip(index, shape, strict=True):
            place = self.plus(self.times(place, size), i)
        return place


class KnownIndices(Indices):
    """Where indices are numbers."""

    plus, times, divided = (staticmethod(f) for f in (operator.add, operator.mul, divmod))


# Views: the index, in what they look at, of their number at ``index``.


def _broadcast(w: Writer, node: Node, index: Sequence[Any]) -> list[Any]:
    dimensions = zip(node.params["broadcast_dimensions"], node.args[0].shape, strict=True)
    return [0 if size == 1 else index[d] for d, size in dimensions]


def _squeeze(w: Writer, node: Node, index: Sequence[Any]) -> list[Any]:
    rest, gone = iter(index), node.params["dimensions"]
    return [0 if d in gone else next(rest) for d in range(len(node.args[0].shape))]


def _reshape(w: Writer, node: Node, index: Sequence[Any]) -> list[Any]:
    place, found = w.flat(node.shape, index), []
    for size in reversed(node.args[0].shape):
        place, rest = w.divided(place, size)
        found.append(rest)
    return found[::-1]


def _slice(w: Writer, node: Node, index: Sequence[Any]) -> list[Any]:
    strides = node.params["strides"] or [1] * len(index)
    starts = node.params["start_indices"]
    return [w.plus(w.times(i, s), a) for i, s, a in zip(index, strides, starts, strict=True)]


def _reverse(w: Writer, node: Node, index: Sequence[Any]) -> list[Any]:
    turned = node.params["dimensions"]
    return [
        w.plus(w.times(i, -1), size - 1) if d in turned else i
        for d, (i, size) in enumerate(zip(index, node.shape, strict=True))
    ]


VIEWS: dict[str, Callable[[Writer, Node, Sequence[Any]], list[Any]]] = {
    "broadcast_in_dim": _broadcast,
    "squeeze": _squeeze,
    "expand_dims": lambda w, node, index: [
        i for d, i in enumerate(index) if d not in node.params["dimensions"]
    ],
    "transpose": lambda w, node, index: [
        index[node.params["permutation"].index(d)] for d in range(len(index))
    ],
    "reshape": _reshape,
    "slice": _slice,
    "rev": _reverse,
    "pick": lambda w, node, index: [node.params["row"], *index],
}

LOOPS = (
    *("dot_general", "reduce_sum", "reduce_max", "reduce_min", "reduce_and", "reduce_or"),
    *("argmax", "argmin", "cumsum", "dynamic_slice", "gather", "concatenate"),
)
KNOWN = frozenset((*ELEMENTWISE, *VIEWS, *LOOPS, "iota"))
