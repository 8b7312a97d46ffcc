"""Stage 4: write the loops of one round, number by number, through a writer.

The writer (`llvm`, `cuda`) knows how to write one operation, one loop, one load. A number is one
vector of runs on a CPU, and one thread's number on a GPU. This stage knows what to write: which
numbers a product sums, where a view looks, which results stay in registers. For 2 x + yᵀ, where
2 x is inlined and yᵀ is a view, it asks the writer for

    loop i:  loop j:  store(at i, j:  add(mul(2, load x at i, j), load y at j, i))

`Round` walks the graph; the functions below it write one kind of loop each (the table `WRITE`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from driftbandit.lanes.graph import Graph, Node, Unsupported
from driftbandit.lanes.primitives import ELEMENTWISE, LOOPS, VIEWS, larger, product_added, smaller
from driftbandit.lanes.schedule import Schedule, by_mask, inside, put, taken

Index = Any
Value = Any
Writer = Any


class Round:
    """Writes one round of a graph.

    Args:
        writer: what the round is written with.
        graph: what is computed.
        schedule: which arrays are kept in memory.
        inputs: for every input node, the memory it is in, or its number.
        targets: for outputs that are written where they belong at once, that memory.
    """

    def __init__(
        self,
        writer: Writer,
        graph: Graph,
        schedule: Schedule,
        inputs: dict[Node, Any],
        targets: dict[Node, Any],
    ) -> None:
        self.w, self.graph, self.schedule, self.targets = writer, graph, schedule, targets
        self.memory: dict[Node, Any] = {}
        self.number: dict[Node, Value] = {}
        for node, where in inputs.items():
            if writer.is_memory(where):
                self.memory[node] = where
                if node.size == 1:
                    self.number[node] = writer.load(where, 0, node.dtype)
            else:
                self.number[node] = where

    def write(self) -> None:
        """Every kept array and single number, in order."""
        ending: dict[int, list[Node]] = {}
        for node in (n for n in self.graph.order if n in self.schedule.kept):
            ending.setdefault(self.schedule.last[node], []).append(node)
        for place, node in enumerate(self.graph.order):
            if node.op in LOOPS and node.size:
                WRITE[node.op](self, node)
            elif node in self.schedule.kept or (node.size == 1 and node.op in ELEMENTWISE):
                self._elementwise(node)
            for finished in ending.get(place, ()):
                self.w.free(self.memory[finished])

    # One number of a node.

    def at(self, node: Node, index: Sequence[Index]) -> Value:
        """The number of a node at an index."""
        return self.together(node, [index])[0]

    def together(self, node: Node, places: Sequence[Sequence[Index]]) -> list[Value]:
        """Several numbers of a node, step by step side by side: chains that do not wait."""
        w = self.w
        if node in self.number:
            return [self.number[node]] * len(places)
        if node in self.memory:
            flat = [w.flat(node.shape, index) for index in places]
            return [w.load(self.memory[node], place, node.dtype) for place in flat]
        if node.op in VIEWS:
            return self.together(node.args[0], [VIEWS[node.op](w, node, i) for i in places])
        if node.op == "constant":
            return [w.element(node, node.params["value"], index) for index in places]
        if node.op == "iota":
            return [w.counter(index[node.params["dimension"]], node.dtype) for index in places]
        if by_mask(node) and all(isinstance(i, int) for index in places for i in index):
            return [self.at(taken(node, index), index) for index in places]
        keys = [(node, w.names(index)) for index in places]
        found = [w.recall(key) for key in keys]
        if None in found:
            columns = [self.together(arg, [inside(arg, i) for i in places]) for arg in node.args]
            found = [ELEMENTWISE[node.op](w, node, *each) for each in zip(*columns, strict=True)]
            for key, value in zip(keys, found, strict=True):
                w.remember(key, value)
        return found

    # Whole arrays.

    def copied(self, node: Node) -> Any:
        """The numbers of a node, written into memory."""
        memory = self.w.room(node.size, node.dtype)
        self._into(memory, node, lambda index: self.at(node, index))
        return memory

    def result(self, node: Node) -> Any:
        """Where the numbers of an output are: in memory that no later result changes."""
        if node in self.number:
            return self.number[node]
        if node in self.memory and node.op != "input":
            return self.memory[node]
        return self.copied(node)

    def move(self, node: Node, source: Any, target: Any) -> None:
        """Write an output from where it is to where it belongs."""
        w, kind = self.w, node.dtype
        if not w.is_memory(source):
            w.store(source, target, 0, kind)
        elif source is not target:
            self._into(target, node, lambda i: w.load(source, w.flat(node.shape, i), kind))

    def room(self, node: Node) -> Any:
        """Memory for a kept array."""
        return self.targets[node] if node in self.targets else self.w.room(node.size, node.dtype)

    def place(self, node: Node) -> Any:
        """Memory for a kept array, which can be read from now on."""
        self.memory[node] = self.room(node)
        return self.memory[node]

    def fill(self, node: Node, at: Callable[[list[Index]], Value]) -> None:
        """Compute every number of a node into its place."""
        if node.size == 1:
            self.number[node] = at([0] * len(node.shape))
        else:
            self._into(self.place(node), node, at)

    def _into(self, memory: Any, node: Node, at: Callable[[list[Index]], Value]) -> None:
        """A loop that writes every number of a node into memory."""
        self.nest(node.shape, lambda i: self.store(node, at(i), memory, i))

    def store(self, node: Node, value: Value, memory: Any, index: Sequence[Index]) -> None:
        """Write a node's number at an index into its memory."""
        self.w.store(value, memory, self.w.flat(node.shape, index), node.dtype)

    def nest(
        self, shape: Sequence[int], body: Callable[[list[Index]], None], index: tuple = ()
    ) -> None:
        """A loop over every index of a shape."""
        if len(index) == len(shape):
            body(list(index))
        else:
            self.w.loop(shape[len(index)], lambda i: self.nest(shape, body, (*index, i)))

    def _elementwise(self, node: Node) -> None:
        """Compute an array in a loop, or a single number."""
        if node.size == 1:
            self.number[node] = self.at(node, [0] * len(node.shape))
            return
        if node in self.schedule.unrolled:
            self._number_by_number(node)
            return
        one_row = put(node) if node in self.targets else None
        if one_row and self.targets[node] is self.memory.get(node.args[1]):
            self._put(node, *one_row)
            return
        length = node.shape[-1]
        step = max(n for n in self.w.side_by_side if length % n == 0)
        memory = self.room(node)

        def row(index: list[Index]) -> None:
            def some(i: Index) -> None:
                places = [[*index, self.w.plus(i, n)] for n in range(step)]
                for where, value in zip(places, self.together(node, places), strict=True):
                    self.store(node, value, memory, where)

            self.w.loop(length, some, step)

        self.nest(node.shape[:-1], row)
        self.memory[node] = memory

    def _put(self, node: Node, number: Node, row: Node) -> None:
        """Replace one row of an array where it is; none if there is no row of this number."""
        w, kind, length = self.w, "int64", node.shape[0]
        memory, stride = self.memory[node.args[1]], node.size // length
        whole = w.convert(self.at(number, [0] * len(number.shape)), number.dtype, kind)
        place = _clipped(self, number, [0] * len(number.shape), length - 1)
        offset = w.apply("mul", kind, place, w.constant(stride, kind))
        there = w.apply("eq", kind, whole, place)

        def one(index: list[Index]) -> None:
            at = w.flat(node.shape[1:], index)
            old = w.read(memory, offset, at, node.dtype)
            w.scatter(
                w.select(there, self.at(row, [0, *index]), old), memory, offset, at, node.dtype
            )

        self.nest(node.shape[1:], one)
        self.memory[node] = memory

    def _number_by_number(self, node: Node) -> None:
        memory = self.room(node)
        for index in itertools.product(*map(range, node.shape)):
            self.store(node, self.at(node, index), memory, index)
        self.memory[node] = memory


def _dot(r: Round, node: Node) -> None:
    """Sums of products, a tile of them at a time in registers."""
    w = r.w
    (x, y), ((sum_x, sum_y), (both_x, both_y)) = node.args, node.params["dimension_numbers"]
    free_x = [d for d in range(len(x.shape)) if d not in (*sum_x, *both_x)]
    free_y = [d for d in range(len(y.shape)) if d not in (*sum_y, *both_y)]
    kinds = ((x, both_x), (x, free_x), (y, free_y))
    groups = [[v.shape[d] for d in which] for v, which in kinds]
    most = w.tile(bool(free_x), bool(free_y))
    if "bool" in (x.dtype, y.dtype, node.dtype):
        raise Unsupported("a product of truth values")
    memory = r.place(node) if node.size > 1 else None

    def read(v: Node, *where: tuple[Sequence[int], Sequence[Index]]) -> Value:
        index: list[Index] = [0] * len(v.shape)
        for dimensions, places in where:
            for d, i in zip(dimensions, places, strict=True):
                index[d] = i
        return w.convert(r.at(v, index), v.dtype, node.dtype)

    def moved(index: list[Index], by: int) -> list[Index]:
        return [*index[:-1], w.plus(index[-1], by)] if index else index

    def tile(starts: list[list[Index]], counts: list[int]) -> None:
        batches, rows, columns = (
            [moved(start, n) for n in range(count)]
            for start, count in zip(starts, counts, strict=True)
        )
        every = itertools.product(*(range(len(part)) for part in (batches, rows, columns)))
        sums = {place: w.variable(node.dtype, 0) for place in every}

        def add(c: list[Index]) -> None:
            left, right = {}, {}
            for b, i, j in sums:
                if (b, i) not in left:
                    left[b, i] = read(x, (both_x, batches[b]), (free_x, rows[i]), (sum_x, c))
                if (b, j) not in right:
                    right[b, j] = read(y, (both_y, batches[b]), (free_y, columns[j]), (sum_y, c))
            for (b, i, j), total in sums.items():
                w.set(total, product_added(w, node.dtype, left[b, i], right[b, j], w.get(total)))

        r.nest([x.shape[d] for d in sum_x], add)
        for (b, i, j), total in sums.items():
            if memory is None:
                r.number[node] = w.get(total)
            else:
                r.store(node, w.get(total), memory, [*batches[b], *rows[i], *columns[j]])

    def tiles(starts: list[list[Index]], counts: list[int]) -> None:
        if len(starts) == 3:
            tile(starts, counts)
            return
        sizes = groups[len(starts)]
        if not sizes:
            tiles([*starts, []], [*counts, 1])
            return
        size = min(most[len(starts)], sizes[-1])
        rest = sizes[-1] % size

        def along(index: list[Index]) -> None:
            w.loop(sizes[-1] - rest, lambda i: tiles([*starts, [*index, i]], [*counts, size]), size)
            if rest:
                tiles([*starts, [*index, sizes[-1] - rest]], [*counts, rest])

        r.nest(sizes[:-1], along)

    if node in r.schedule.wanted and [len(sizes) for sizes in groups] == [0, 1, 1]:
        for first, rows, column, columns in _stripes(r.schedule.wanted[node], *most[1:]):
            tile([[], [first], [column]], [1, rows, columns])
    else:
        tiles([], [])


def _stripes(
    wanted: set[tuple[int, ...]], height: int, width: int
) -> Iterator[tuple[int, int, int, int]]:
    """Tiles (row, rows, column, columns) that cover what is wanted of a product."""
    rows = sorted({i for i, _ in wanted})
    for n in range(0, len(rows), height):
        stripe = rows[n : n + height]
        columns = [j for i, j in wanted if i in stripe]
        first, count = min(columns), max(columns) - min(columns) + 1
        size = -(-count // -(-count // width))  # tiles of about the same width
        for start in range(0, count, size):
            many = stripe[-1] - stripe[0] + 1
            yield stripe[0], many, first + start, min(size, count - start)


def _edge(dtype: str, sign: int) -> float:
    """The number that every other one is above (sign −1) or below (+1)."""
    if dtype.startswith("f"):
        return sign * math.inf
    bits = {"bool": 1, "int32": 31, "int64": 63, "uint32": 32, "uint64": 64}[dtype]
    low = 0 if dtype.startswith(("u", "b")) else -(2**bits)
    return 2**bits - 1 if sign > 0 else low


def _reduction(
    start: Callable[[str], float], combine: Callable[[Writer, str, Value, Value], Value]
) -> Callable[[Round, Node], None]:
    def write(r: Round, node: Node) -> None:
        x, axes = node.args[0], node.params["axes"]
        rest = [d for d in range(len(x.shape)) if d not in axes]

        def at(index: list[Index]) -> Value:
            total = r.w.variable(x.dtype, start(x.dtype))

            def add(inner: list[Index]) -> None:
                where = dict(zip(rest, index, strict=True)) | dict(zip(axes, inner, strict=True))
                value = r.at(x, [where[d] for d in range(len(x.shape))])
                r.w.set(total, combine(r.w, x.dtype, r.w.get(total), value))

            r.nest([x.shape[d] for d in axes], add)
            return r.w.get(total)

        r.fill(node, at)

    return write


def _arg(sign: int) -> Callable[[Round, Node], None]:
    """The first place of the highest (sign +1) or lowest number."""

    def write(r: Round, node: Node) -> None:
        x, (axis,) = node.args[0], node.params["axes"]
        w, kind = r.w, node.args[0].dtype

        def at(index: list[Index]) -> Value:
            best = w.variable(kind, _edge(kind, -sign))
            place = w.variable(node.dtype, 0)

            def look(i: Index) -> None:
                value = r.at(x, [*index[:axis], i, *index[axis:]])
                better = w.apply("gt" if sign > 0 else "lt", kind, value, w.get(best))
                if kind.startswith("f"):  # the first that is not a number beats all
                    strange = w.apply("ne", kind, value, value)
                    before = w.apply("eq", kind, w.get(best), w.get(best))
                    better = w.apply("or", "bool", better, w.apply("and", "bool", strange, before))
                w.set(best, w.select(better, value, w.get(best)))
                w.set(place, w.select(better, w.counter(i, node.dtype), w.get(place)))

            w.loop(x.shape[axis], look)
            return w.get(place)

        r.fill(node, at)

    return write


def _cumulated(r: Round, node: Node) -> None:
    if len(node.shape) != 1 or node.params["reverse"]:
        raise Unsupported("cumsum of more than one axis, or from the end")
    total = r.w.variable(node.dtype, 0)

    def at(index: list[Index]) -> Value:
        r.w.set(total, r.w.apply("add", node.dtype, r.w.get(total), r.at(node.args[0], index)))
        return r.w.get(total)

    r.fill(node, at)


def _clipped(r: Round, start: Node, index: Sequence[Index], high: int) -> Value:
    """A start as a whole number between 0 and high."""
    w, kind = r.w, "int64"
    place = w.convert(r.at(start, index), start.dtype, kind)
    low, top = w.constant(0, kind), w.constant(high, kind)
    place = w.select(w.apply("lt", kind, place, low), low, place)
    return w.select(w.apply("gt", kind, place, top), top, place)


def _sliced(r: Round, node: Node) -> None:
    """A part of an array; every run reads from a place of its own."""
    w, (x, *starts) = r.w, node.args
    offset, stride = w.constant(0, "int64"), 1
    for size, part, start in reversed(list(zip(x.shape, node.shape, starts, strict=True))):
        if size > part:
            place = _clipped(r, start, (), size - part)
            moved = w.apply("mul", "int64", place, w.constant(stride, "int64"))
            offset = w.apply("add", "int64", offset, moved)
        stride *= size
    _read_from(r, node, x, lambda index: (offset, w.flat(x.shape, index)))


def _gathered(r: Round, node: Node) -> None:
    """``x[places]`` along the first axis."""
    w, (x, places) = r.w, node.args
    numbers = node.params["dimension_numbers"]
    rows = tuple(node.params["slice_sizes"]) == (1, *x.shape[1:])
    batch = len(places.shape) - 1
    if (
        not rows
        or tuple(numbers.collapsed_slice_dims) != (0,)
        or tuple(numbers.start_index_map) != (0,)
        or numbers.operand_batching_dims
        or tuple(numbers.offset_dims) != tuple(range(batch, len(node.shape)))
        or "FILL" in str(node.params["mode"])
    ):
        raise Unsupported("gather other than x[places]")
    stride = math.prod(x.shape[1:])

    def where(index: list[Index]) -> tuple[Value, Index]:
        place = _clipped(r, places, [*index[:batch], 0], x.shape[0] - 1)
        offset = w.apply("mul", "int64", place, w.constant(stride, "int64"))
        return offset, w.flat(x.shape[1:], index[batch:])

    _read_from(r, node, x, where)


def _read_from(
    r: Round, node: Node, x: Node, where: Callable[[list[Index]], tuple[Value, Index]]
) -> None:
    if x.op == "constant":
        memory = r.w.table(x.params["value"])
    elif x in r.memory:
        memory = r.memory[x]
    elif x.size == 1:
        r.fill(node, lambda index: r.at(x, [0] * len(x.shape)))
        return
    else:  # a view, or work with this reader alone: write it down first
        memory = r.copied(x)
    r.fill(node, lambda index: r.w.read(memory, *where(index), x.dtype))


def _joined(r: Round, node: Node) -> None:
    axis = node.params["dimension"]
    memory, start = r.place(node), 0
    for x in node.args:

        def put(index: list[Index], x: Node = x, start: int = start) -> None:
            to = [*index[:axis], r.w.plus(index[axis], start), *index[axis + 1 :]]
            r.store(node, r.at(x, index), memory, to)

        r.nest(x.shape, put)
        start += x.shape[axis]


WRITE: dict[str, Callable[[Round, Node], None]] = {
    "dot_general": _dot,
    "reduce_sum": _reduction(lambda dtype: 0, lambda w, dtype, s, x: w.apply("add", dtype, s, x)),
    "reduce_max": _reduction(lambda dtype: _edge(dtype, -1), larger),
    "reduce_min": _reduction(lambda dtype: _edge(dtype, 1), smaller),
    "reduce_or": _reduction(lambda dtype: 0, lambda w, dtype, s, x: w.apply("or", dtype, s, x)),
    "reduce_and": _reduction(
        lambda dtype: -1 if dtype.startswith("i") else _edge(dtype, 1),
        lambda w, dtype, s, x: w.apply("and", dtype, s, x),
    ),
    "argmax": _arg(+1),
    "argmin": _arg(-1),
    "cumsum": _cumulated,
    "dynamic_slice": _sliced,
    "gather": _gathered,
    "concatenate": _joined,
}
