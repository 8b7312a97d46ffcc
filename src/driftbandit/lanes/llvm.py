"""Stage 5, on a CPU: LLVM in which every number is a vector of runs.

An array of one run, say d × d, is in memory d × d × lanes: the same number of neighboring runs side
by side, one vector register wide. With four lanes, one instruction adds the numbers of four runs:

    x:      run 0    run 1    run 2    run 3
    y:      run 0    run 1    run 2    run 3
    x + y:  run 0    run 1    run 2    run 3

Loops stay loops; LLVM unrolls what pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from driftbandit.lanes.primitives import Indices

ALIGNMENT = 64  # bytes: the widest vectors are loaded from addresses that they divide
I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
TYPES = {"float64": ir.DoubleType(), "float32": ir.FloatType(), "bool": I1}
TYPES |= {"int64": I64, "uint64": I64, "int32": I32, "uint32": I32}
SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
REAL = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem", "neg": "fneg"}
WHOLE = {"add": "add", "sub": "sub", "mul": "mul", "neg": "neg", "and": "and_", "or": "or_"}
WHOLE |= {"xor": "xor", "not": "not_", "shift_left": "shl", "shift_right_logical": "lshr"}
WHOLE |= {"shift_right_arithmetic": "ashr"}
NAMES = {TYPES["float64"]: "f64", TYPES["float32"]: "f32", I32: "i32", I64: "i64"}
CALLS = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "fma": "fma"}


class Memory(NamedTuple):
    """Where an array is."""

    pointer: Any
    lanes: int
    """How many runs it holds side by side; 1: all runs read the same."""
    slot: tuple[int, int] | None = None
    """Size and place in the scratch buffer."""


def width(dtype: str) -> int:
    """Bytes of a number in memory."""
    return np.dtype(dtype).itemsize


def stored(dtype: str) -> Any:
    """The type of a number in memory: truth values have a byte each."""
    return I8 if dtype == "bool" else TYPES[dtype]


class Place(NamedTuple):
    """An index inside a loop: LLVM's value and a known number to be added."""

    base: Any
    offset: int


class Writer(Indices):
    """Writes one function ``rounds(blocks, span, first, arrays, scratch)``."""

    side_by_side = (1, 2, 3, 4, 5)
    """How many numbers of an elementwise array are computed in step; the largest that divides."""

    def __init__(self, lanes: int) -> None:
        self.lanes, self.module = lanes, ir.Module("lanes")
        pointers = I8.as_pointer().as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [I64, I64, I32, pointers, I8.as_pointer()])
        self.function = ir.Function(self.module, kind, "rounds")
        self.function.args[4].add_attribute("noalias")
        self.entry = ir.IRBuilder(self.function.append_basic_block())
        self.b = ir.IRBuilder(self.function.append_basic_block())
        self.scratch = 0
        self._free: dict[int, list[int]] = {}
        self._known: dict[Any, Any] = {}
        self._tables: dict[bytes, Any] = {}

    def argument(self, table: Any, place: int) -> Any:
        """A pointer of the table that the program is called with."""
        return self.b.load(self.b.gep(table, [self.index(place)]))

    def memory(self, pointer: Any, place: Any, node: Any) -> Memory:
        """The node's array number ``place`` behind a pointer."""
        size = self.index(node.size * self.lanes * width(node.dtype))
        return Memory(self.b.gep(pointer, [self.b.mul(self.index(place), size)]), self.lanes)

    def round_number(self, first: Any, t: Any) -> Any:
        """Round t after the first, the same for all runs."""
        return self.spread(self.b.add(first, self.b.trunc(self.index(t), I32)))

    def finish(self) -> str:
        """The text of the module."""
        self.b.ret_void()
        self.entry.branch(self.function.basic_blocks[1])
        return str(self.module)

    # Numbers.

    def vector(self, dtype: str) -> Any:
        return ir.VectorType(TYPES[dtype], self.lanes)

    def constant(self, value: Any, dtype: str) -> Any:
        one = float(value) if dtype.startswith("f") else int(value)
        return ir.Constant(self.vector(dtype), [one] * self.lanes)

    def spread(self, scalar: Any) -> Any:
        """One number for all runs."""
        undefined = ir.Constant(ir.VectorType(scalar.type, self.lanes), ir.Undefined)
        first = self.b.insert_element(undefined, scalar, ir.Constant(I32, 0))
        every = ir.Constant(ir.VectorType(I32, self.lanes), [0] * self.lanes)
        return self.b.shuffle_vector(first, undefined, every)

    def counter(self, index: Any, dtype: str) -> Any:
        """A loop's index as a number."""
        if isinstance(index, int):
            return self.constant(index, dtype)
        index = self.index(index)
        if dtype.startswith("f"):
            return self.spread(self.b.sitofp(index, TYPES[dtype]))
        return self.spread(index if TYPES[dtype] == I64 else self.b.trunc(index, TYPES[dtype]))

    def element(self, node: Any, value: np.ndarray, index: Sequence[Any]) -> Any:
        """A number of a constant array."""
        if value.ndim == 0 or all(isinstance(i, int) for i in index):
            return self.constant(value[tuple(index)], node.dtype)
        return self.load(self.table(value), self.flat(value.shape, index), node.dtype)

    def table(self, value: np.ndarray) -> Memory:
        """A constant array in memory."""
        key = value.tobytes() + str(value.dtype).encode()
        if key not in self._tables:
            kind = stored(str(value.dtype))
            convert = float if value.dtype.kind == "f" else int
            numbers = ir.Constant(
                ir.ArrayType(kind, value.size), [convert(v) for v in value.ravel()]
            )
            table = ir.GlobalVariable(self.module, numbers.type, f"table{len(self._tables)}")
            table.initializer, table.global_constant, table.linkage = numbers, True, "internal"
            self._tables[key] = table
        return Memory(self.b.bitcast(self._tables[key], I8.as_pointer()), 1)

    def apply(self, op: str, dtype: str, *values: Any) -> Any:
        """One operation on numbers of a type."""
        if op in SIGNS:
            return self._compared(SIGNS[op], dtype, *values)
        if dtype.startswith("f") and op in CALLS:
            return self._called(CALLS[op], *values)
        if dtype.startswith("f"):
            return getattr(self.b, REAL[op])(*values)
        if op in ("div", "rem"):
            return getattr(self.b, ("u" if dtype.startswith("u") else "s") + op)(*values)
        found = getattr(self.b, WHOLE[op])(*values)
        if op in ("shift_left", "shift_right_logical"):  # LLVM leaves shifts by the width open
            bits = self.constant(TYPES[dtype].width, dtype)
            fits = self.b.icmp_unsigned("<", values[1], bits)
            found = self.b.select(fits, found, self.constant(0, dtype))
        return found

    def _compared(self, sign: str, dtype: str, x: Any, y: Any) -> Any:
        if dtype.startswith("f"):
            compare = self.b.fcmp_unordered if sign == "!=" else self.b.fcmp_ordered
            return compare(sign, x, y)
        unsigned = dtype.startswith("u") or dtype == "bool"
        return (self.b.icmp_unsigned if unsigned else self.b.icmp_signed)(sign, x, y)

    def _called(self, name: str, *values: Any, result: Any = None) -> Any:
        """One of LLVM's own functions."""
        kinds = [value.type for value in values]
        named = [*([result] if result else []), kinds[0]]
        full = ".".join([f"llvm.{name}", *(f"v{self.lanes}{NAMES[k.element]}" for k in named)])
        known = self.module.globals.get(full)
        if known is None:
            kind = ir.FunctionType(result or kinds[0], kinds)
            known = ir.Function(self.module, kind, full)
        return self.b.call(known, values)

    def select(self, which: Any, yes: Any, no: Any) -> Any:
        return self.b.select(which, yes, no)

    def bitcast(self, value: Any, old: str, new: str) -> Any:
        return self.b.bitcast(value, self.vector(new))

    def convert(self, value: Any, old: str, new: str) -> Any:
        """The same number in another type."""
        kind, b = self.vector(new), self.b
        if old == new or (value.type == kind and "f" not in (old[0], new[0]) and new != "bool"):
            return value
        if new == "bool":
            return self._compared("!=", old, value, self.constant(0, old))
        signed = old.startswith("i")
        if old.startswith("f") and new.startswith("f"):
            return b.fpext(value, kind) if new == "float64" else b.fptrunc(value, kind)
        if old.startswith("f"):
            name = "fptosi.sat" if new.startswith("i") else "fptoui.sat"  # as XLA: no overflow
            return self._called(name, value, result=kind)
        if new.startswith("f"):
            return b.sitofp(value, kind) if signed else b.uitofp(value, kind)
        if TYPES[new].width < TYPES[old].width:
            return b.trunc(value, kind)
        return b.sext(value, kind) if signed else b.zext(value, kind)

    # Indices: Python numbers where they are known, a `Place` inside loops.

    def index(self, i: Any) -> Any:
        """An index as LLVM has it."""
        if isinstance(i, Place):
            return self.b.add(i.base, ir.Constant(I64, i.offset)) if i.offset else i.base
        return ir.Constant(I64, i) if isinstance(i, int) else i

    def plus(self, i: Any, j: Any) -> Any:
        (i, m), (j, n) = (k if isinstance(k, Place) else (None, k) for k in (i, j))
        if i is None or j is None:
            return m + n if i is j else Place(j if i is None else i, m + n)
        return Place(self._once("add", i, j), m + n)

    def times(self, i: Any, n: int) -> Any:
        if isinstance(i, int):
            return i * n
        return i if n == 1 else Place(self._once("mul", i.base, self.index(n)), i.offset * n)

    def divided(self, i: Any, n: int) -> tuple[Any, Any]:
        if isinstance(i, int):
            return divmod(i, n)
        whole, by = self.index(i), self.index(n)
        return Place(self.b.udiv(whole, by), 0), Place(self.b.urem(whole, by), 0)

    def names(self, index: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(i if isinstance(i, int) else (i.base.name, i.offset) for i in index)

    def _once(self, op: str, *values: Any) -> Any:
        """An operation on indices, or its result if it was written before."""
        key = (
            op,
            *(value.get_reference() if hasattr(value, "name") else str(value) for value in values),
        )
        found = self.recall(key)
        if found is None:
            first, second = values
            found = self.b.gep(first, [second]) if op == "gep" else getattr(self.b, op)(*values)
            self.remember(key, found)
        return found

    def recall(self, key: Any) -> Any:
        return self._known.get(key)

    def remember(self, key: Any, value: Any) -> None:
        self._known[key] = value

    # Control.

    def loop(self, count: Any, body: Callable[[Any], None], step: int = 1) -> None:
        """``for i in range(0, count, step): body(i)``; a single step is written without a loop."""
        if isinstance(count, int) and count <= step:
            if count > 0:
                body(0)
            return
        before = self.b.block
        head, after = (self.function.append_basic_block() for _ in range(2))
        if isinstance(count, int):
            self.b.branch(head)
        else:
            some = self.b.icmp_signed(">", count, self.index(0))
            self.b.cbranch(some, head, after)
        self.b.position_at_end(head)
        i, known = self.b.phi(I64), self._known
        self._known = dict(known)  # what is computed inside is not known outside
        i.add_incoming(self.index(0), before)
        body(Place(i, 0))
        following = self.b.add(i, self.index(step))
        i.add_incoming(following, self.b.block)
        self.b.cbranch(self.b.icmp_signed("<", following, self.index(count)), head, after)
        self.b.position_at_end(after)
        self._known = known

    def variable(self, dtype: str, start: Any) -> Any:
        place = self.entry.alloca(self.vector(dtype))
        self.b.store(self.constant(start, dtype), place)
        return place

    def get(self, variable: Any) -> Any:
        return self.b.load(variable)

    def set(self, variable: Any, value: Any) -> None:
        self.b.store(value, variable)

    def tile(self, rows: bool, columns: bool) -> tuple[int, int, int]:
        """Batches, rows and columns of a product that are summed at once: ten registers."""
        return (10 if not rows and not columns else 1, 2 if columns else 10, 5 if rows else 10)

    # Memory.

    def is_memory(self, where: Any) -> bool:
        return isinstance(where, Memory)

    def room(self, size: int, dtype: str) -> Memory:
        """A place in the scratch buffer."""
        size = -(-size * self.lanes * width(dtype) // ALIGNMENT) * ALIGNMENT
        free = self._free.setdefault(size, [])
        if not free:
            free.append(self.scratch)
            self.scratch += size
        place = free.pop()
        pointer = self.b.gep(self.function.args[4], [self.index(place)])
        return Memory(pointer, self.lanes, (size, place))

    def free(self, memory: Memory) -> None:
        """Give a place away."""
        if memory.slot is not None:
            size, place = memory.slot
            self._free[size].append(place)

    def _address(self, memory: Memory, place: Any, dtype: str) -> Any:
        kind = ir.VectorType(stored(dtype), self.lanes) if memory.lanes > 1 else stored(dtype)
        byte = self.times(place, memory.lanes * width(dtype))
        base, offset = byte if isinstance(byte, Place) else (None, byte)
        start = memory.pointer if base is None else self._once("gep", memory.pointer, base)
        return self.b.bitcast(self.b.gep(start, [self.index(offset)]), kind.as_pointer())

    def load(self, memory: Memory, place: Any, dtype: str) -> Any:
        address = self._address(memory, place, dtype)
        value = self.b.load(address, align=min(ALIGNMENT, width(dtype) * memory.lanes))
        if memory.lanes == 1:
            value = self.spread(value)
        return self.b.trunc(value, self.vector(dtype)) if dtype == "bool" else value

    def store(self, value: Any, memory: Memory, place: Any, dtype: str) -> None:
        if dtype == "bool":
            value = self.b.zext(value, ir.VectorType(I8, self.lanes))
        address = self._address(memory, place, dtype)
        self.b.store(value, address, align=min(ALIGNMENT, width(dtype) * self.lanes))

    def _each(
        self, memory: Memory, offset: Any, place: Any, kind: Any
    ) -> Iterator[tuple[Any, Any]]:
        """For every lane its number, and the address of what it finds at its own offset."""
        starts = self._once("mul", offset, self.constant(memory.lanes, "int64"))
        base, apart = self.times(place, memory.lanes), int(memory.lanes > 1)
        pointer = self._once("bitcast", memory.pointer, kind.as_pointer())
        for number in range(self.lanes):
            lane = ir.Constant(I32, number)
            start = self._once("gep", pointer, self._once("extract_element", starts, lane))
            yield lane, self.b.gep(start, [self.index(self.plus(base, number * apart))])

    def read(self, memory: Memory, offset: Any, place: Any, dtype: str) -> Any:
        """Every run reads from an offset of its own."""
        kind = stored(dtype)
        value = ir.Constant(ir.VectorType(kind, self.lanes), ir.Undefined)
        for lane, address in self._each(memory, offset, place, kind):
            value = self.b.insert_element(value, self.b.load(address), lane)
        return self.b.trunc(value, self.vector(dtype)) if dtype == "bool" else value

    def scatter(self, value: Any, memory: Memory, offset: Any, place: Any, dtype: str) -> None:
        """Every run writes to an offset of its own."""
        if dtype == "bool":
            value = self.b.zext(value, ir.VectorType(I8, self.lanes))
        for lane, address in self._each(memory, offset, place, stored(dtype)):
            self.b.store(self.b.extract_element(value, lane), address)
