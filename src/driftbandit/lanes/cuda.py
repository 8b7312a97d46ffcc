"""Stage 5, on a GPU: record a round of one run as single operations, and write them as CUDA C.

A thread is a run. Loops run here, in Python, so that what is recorded has neither loops nor arrays:

    const double v7 = fma(same.G[1], v3, v6);

Equal operations are recorded once, a thread's own arrays are lists of names, and what no result
needs is not written. The order is depth first from the results: a row of a product comes right
before what reads it, so that few numbers are alive at a time and registers hold them.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lanes.graph import Unsupported
from driftbandit.lanes.primitives import KnownIndices

MOST_OPERATIONS = 11_000  # of a round: more outgrow the instruction cache and compile slowly
FRESH_EVERY = 16  # lines after which the compiler must forget what it has loaded of a system

TYPES = {"float64": "double", "float32": "float", "bool": "bool", "int64": "long long"}
TYPES |= {"uint64": "unsigned long long", "int32": "int", "uint32": "unsigned"}
SUFFIX = {"int64": "LL", "uint64": "ULL", "uint32": "u", "int32": "", "float32": "f"}
COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
INFIX |= COMPARE | {"rem": "%", "shift_right_arithmetic": ">>"}
CALLS = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "fma": "fma", "rem": "fmod"}
CASTS = {"int64": "__double_as_longlong", "float64": "__longlong_as_double"}
COMMUTATIVE = ("add", "mul", "and", "or", "xor", "eq", "ne")


class Own(NamedTuple):
    """An array of a thread: the values of its numbers."""

    values: list[Any]


class Outside(NamedTuple):
    """An array in memory."""

    at: Callable[[Any], str]
    """C for the number at a place, which is a number or C itself."""
    again: bool = False
    """Read it wherever it is used, instead of once into a register."""
    side: int = 0
    """n, if it is a symmetric n × n matrix, of which one half is read; otherwise 0."""


class Operation(NamedTuple):
    """What a value is."""

    op: str
    dtype: str
    args: tuple[int, ...] = ()
    data: Any = None
    """Of a constant its value, of a name the text, of a load the array and the place."""


class Writer(KnownIndices):
    """Records operations; a value is the number of one, an index is known."""

    side_by_side = (1,)
    names, get = staticmethod(tuple), staticmethod(operator.itemgetter(0))

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.tables: dict[str, str] = {}
        self._numbers: dict[Operation, int] = {}
        known: dict[Any, int] = {}
        self.recall, self.remember = known.get, known.__setitem__

    def record(self, op: str, dtype: str, args: Sequence[int] = (), data: Any = None) -> int:
        """The value of an operation."""
        made = Operation(op, dtype, tuple(args), data)
        if made not in self._numbers:
            if len(self.operations) > 2 * MOST_OPERATIONS:
                raise Unsupported(f"a round of more than {MOST_OPERATIONS} operations")
            self._numbers[made] = len(self.operations)
            self.operations.append(made)
        return self._numbers[made]

    # Numbers.

    def constant(self, value: Any, dtype: str) -> int:
        if dtype.startswith("f"):  # by their bits: −0 is not 0, and nan is nan
            return self.record("constant", dtype, data=struct.pack("<d", float(value)))
        return self.record("constant", dtype, data=bool(value) if dtype == "bool" else int(value))

    counter = constant

    def element(self, node: Any, value: np.ndarray, index: Sequence[int]) -> int:
        return self.constant(value[tuple(index)], node.dtype)

    def known(self, value: int) -> Any:
        """The number that a constant is; None for anything else."""
        op, dtype, _, data = self.operations[value]
        if op != "constant":
            return None
        return struct.unpack("<d", data)[0] if dtype.startswith("f") else data

    def apply(self, op: str, dtype: str, *values: int) -> int:
        """One operation on numbers of a type; NVRTC folds what we leave, but sees no symmetry."""
        if not dtype.startswith("f") and op in (*COMPARE, "add", "mul"):
            known = [self.known(v) for v in values]
            if None not in known and max(map(abs, known)) < 2**15:
                return self.constant(getattr(operator, op)(*known), _kind(op, dtype))
            if op == "add" and 0 in known:
                return values[1 - known.index(0)]
        if op == "fma":  # (−x) y = −(x y): at most one minus, on the first factor
            pairs = [self._without_minus(v) for v in values[:2]]
            x, y = sorted(value for value, _ in pairs)
            minus = pairs[0][1] != pairs[1][1]
            values = self.record("neg", dtype, (x,)) if minus else x, y, values[2]
        elif op in COMMUTATIVE:
            values = tuple(sorted(values))
        return self.record(op, _kind(op, dtype), values)

    def _without_minus(self, value: int) -> tuple[int, bool]:
        op, _, args, _ = self.operations[value]
        return (args[0], True) if op == "neg" else (value, False)

    def select(self, which: int, yes: int, no: int) -> int:
        if yes == no or self.known(which) is not None:
            return yes if yes == no or self.known(which) else no
        return self.record("select", self.operations[yes].dtype, (which, yes, no))

    def bitcast(self, value: int, old: str, new: str) -> int:
        return self.record("bitcast", new, (value,))

    def convert(self, value: int, old: str, new: str) -> int:
        known = self.known(value)
        if isinstance(known, int) and new != "bool" and 0 <= known < 2**15:
            return self.constant(known, new)
        return value if old == new else self.record("convert", new, (value,))

    # Loops run now.

    def loop(self, count: int, body: Callable[[int], None], step: int = 1) -> None:
        for i in range(0, count, step):
            body(i)

    def variable(self, dtype: str, start: Any) -> list[int]:
        return [self.constant(start, dtype)]

    def set(self, variable: list[int], value: int) -> None:
        variable[0] = value

    def tile(self, rows: bool, columns: bool) -> tuple[int, int, int]:
        return (1 << 30,) * 3

    # Memory.

    def is_memory(self, where: Any) -> bool:
        return isinstance(where, Own | Outside)

    def room(self, size: int, dtype: str) -> Own:
        return Own([None] * size)

    def free(self, memory: Own) -> None:
        """Names cost nothing."""

    def table(self, value: np.ndarray) -> Outside:
        name = self._table(str(value.dtype), value.ravel().tolist())
        return Outside(lambda place: f"{name}[{place}]")

    def _table(self, dtype: str, numbers: Sequence[Any]) -> str:
        text = ", ".join(literal(number, dtype) for number in numbers)
        text = f"{TYPES[dtype]} @[{len(numbers) + 1}] = {{{text}}};"
        return self.tables.setdefault(text, f"table{len(self.tables)}")

    def load(self, memory: Own | Outside, place: int, dtype: str) -> int:
        if isinstance(memory, Own):
            return memory.values[place]
        if memory.side:
            place = self.flat((memory.side,) * 2, sorted(divmod(place, memory.side)))
        return self.record("again" if memory.again else "load", dtype, (), (memory, place))

    def store(self, value: int, memory: Own, place: int, dtype: str) -> None:
        memory.values[place] = value

    def read(self, memory: Own | Outside, offset: int, place: int, dtype: str) -> int:
        """The number at ``offset`` + place; of a thread's own array by comparing every place."""
        if isinstance(memory, Outside):
            return self.record("read", dtype, (offset,), (memory, place))
        if self.known(offset) is not None:
            return memory.values[self.known(offset) + place]
        index, stride = offset, 1
        if self.operations[offset].op == "mul":  # row · stride
            one, other = self.operations[offset].args
            index = one if self.known(one) is None else other
            stride = self.known(one + other - index)
        first, *others = memory.values[place::stride]
        for i, value in enumerate(others, 1):
            here = self.apply("eq", "int64", index, self.constant(i, "int64"))
            first = self.select(here, value, first)
        return first

    # Text.

    def order(self, results: Sequence[int]) -> Iterator[int]:
        """What the results need, depth first; a sum before the product that is added to it."""
        done: set[int] = set()
        stack = [(result, False) for result in reversed(results)]
        while stack:
            value, ready = stack.pop()
            if ready:
                yield value
            elif value not in done:
                done.add(value)
                op, _, args, _ = self.operations[value]
                stack.append((value, True))
                stack += [(a, False) for a in (args if op == "fma" else args[::-1])]

    def text(self, results: Sequence[int], fresh: str) -> tuple[list[str], list[str]]:
        """Lines of C with ``fresh`` now and then, and what the results are called in them."""
        lines: list[str] = []
        names: dict[int, str] = {}
        order = list(self.order(results))
        doubles = [v for v in order if self.operations[v][:2] == ("constant", "float64")]
        long = [v for v in doubles if any(self.operations[v].data[:4])]  # too long for instructions
        table = self._table("float64", [self.known(v) for v in long])
        names |= {value: f"{table}[{place}]" for place, value in enumerate(long)}
        for value in order:
            op, dtype, args, data = self.operations[value]
            if op == "constant":
                names.setdefault(value, literal(self.known(value), dtype))
            elif op in ("name", "again"):
                names[value] = data if op == "name" else data[0].at(data[1])
            else:
                names[value] = f"v{value}"
                right = self._expression(self.operations[value], [names[a] for a in args])
                lines.append(f"const {TYPES[dtype]} v{value} = {right};")
                lines += [fresh] * (fresh != "" and len(lines) % FRESH_EVERY == 0)
        if len(lines) > MOST_OPERATIONS:
            raise Unsupported(f"a round of {len(lines)} operations; at most {MOST_OPERATIONS}")
        return lines, [names[value] for value in results]

    def _expression(self, operation: Operation, values: Sequence[str]) -> str:
        op, dtype, args, data = operation
        kind = self.operations[args[0]].dtype if args else dtype
        if op in ("load", "read"):
            return data[0].at(f"({values[0]} + {data[1]})" if args else data[1])
        if op == "select":
            return "{} ? {} : {}".format(*values)
        if op == "bitcast":
            return f"{CASTS[dtype]}({values[0]})"
        if op == "convert":
            return f"{values[0]} != 0" if dtype == "bool" else f"({TYPES[dtype]}){values[0]}"
        if op in ("neg", "not"):
            return {"neg": "-", "not": "!" if dtype == "bool" else "~"}[op] + values[0]
        if kind.startswith("f") and op in CALLS:
            return f"{CALLS[op]}{SUFFIX.get(kind, '')}({', '.join(values)})"
        if op in ("shift_left", "shift_right_logical"):
            bits, plain = 8 * np.dtype(dtype).itemsize, TYPES["u" + dtype.removeprefix("u")]
            sign = "<<" if op == "shift_left" else ">>"
            return f"({plain}){values[1]} < {bits} ? ({plain}){values[0]} {sign} {values[1]} : 0"
        if dtype.startswith("i") and op in ("add", "sub", "mul"):  # C leaves overflow open
            plain = TYPES["u" + dtype]
            return f"({TYPES[dtype]})(({plain}){values[0]} {INFIX[op]} ({plain}){values[1]})"
        return f"{values[0]} {INFIX[op]} {values[1]}"


def _kind(op: str, dtype: str) -> str:
    return "bool" if op in COMPARE else dtype


def literal(value: Any, dtype: str) -> str:
    """A number in C."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype.startswith("f") and not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "(-INFINITY)"
    if dtype.startswith("i") and value == -(2 ** (8 * np.dtype(dtype).itemsize - 1)):
        return f"({value + 1}{SUFFIX[dtype]} - 1)"
    return f"({value!r}{SUFFIX.get(dtype, '')})"
