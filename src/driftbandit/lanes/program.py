"""The contract: a step for one run and one round in; a program for many runs and rounds out.

In memory the runs lie in blocks as wide as a vector register. An array of one run, d × d say, is
blocks × d × d × lanes: the same number of neighboring runs side by side. Streams and results have
their rounds before that, blocks × rounds × d × lanes.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from driftbandit.lanes import llvm, machine_code
from driftbandit.lanes.contraction import contracted
from driftbandit.lanes.graph import Graph, Node, Step, traced
from driftbandit.lanes.llvm import ALIGNMENT
from driftbandit.lanes.loops import Round
from driftbandit.lanes.machine_code import Machine
from driftbandit.lanes.primitives import KNOWN
from driftbandit.lanes.schedule import in_place, scheduled

OWN, STATE, ROUND, STREAM, SHARED = range(5)  # the step's arguments; the last is part of the first


class Program:
    """A compiled step."""

    used: list[bool]
    """For the leaves of ``own``, whether they are read; for the others anything may be given."""

    def __init__(self, code: bytes, graph: Graph, roles: Sequence[int], lanes: int) -> None:
        self.lanes, self._scratch = lanes, int.from_bytes(code[:8])
        self._function, self._library = machine_code.function(code[8:])
        inputs = zip(graph.inputs, roles, graph.used(), strict=True)
        given = [(node, role, used) for node, role, used in inputs if role != ROUND]
        given += [(node, STREAM, True) for node in graph.outputs[list(roles).count(STATE) :]]
        self.used = [used for _, role, used in given if role in (OWN, SHARED)]
        self._sizes = [
            (role, _size(node, role, lanes) if used else 0) for node, role, used in given
        ]

    def _check(self, leaves: Sequence[np.ndarray]) -> None:
        """A wrong size would let the program write into the memory of others."""
        blocks, rounds = len(leaves[0]), set()
        for place, (leaf, (role, size)) in enumerate(zip(leaves, self._sizes, strict=True)):
            if not size:  # not read
                continue
            count, rest = divmod(leaf.nbytes, size * (1 if role == SHARED else blocks))
            if rest or (role != STREAM and count != 1) or not leaf.flags.c_contiguous:
                raise ValueError(f"array {place} has shape {leaf.shape} and type {leaf.dtype}")
            rounds |= {count} if role == STREAM else set()
        if len(rounds) > 1:
            raise ValueError(f"streams and results have {rounds} rounds")

    def on(self, *arrays: Sequence[np.ndarray]) -> Callable[[int, int], None]:
        """The program on some runs: ``play(rounds, first)`` plays so many rounds from the first on.

        States and results are written in place; one call at a time.

        Args:
            *arrays: the leaves of own, state, stream and results, as `aligned` made them. Streams
                and results have exactly as many rounds as are played.
        """
        leaves = [leaf for group in arrays for leaf in group]
        self._check(leaves)
        scratch = aligned((self._scratch + ALIGNMENT,), np.uint8)
        table = (ctypes.c_void_p * len(leaves))(*(leaf.ctypes.data for leaf in leaves))
        blocks, memory = len(leaves[0]), (ctypes.addressof(table), scratch.ctypes.data)
        held = (leaves, scratch, table)  # as long as the function is

        def play(rounds: int, first: int, held: Any = held) -> None:
            self._function(blocks, rounds, first, *memory)

        return play


def aligned(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """An array whose first number is where the widest vectors may be loaded."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


def in_lanes(leaf: np.ndarray, lanes: int) -> np.ndarray:
    """An array runs × … as blocks × … × lanes; the runs are a multiple of the lanes."""
    leaf = np.asarray(leaf)
    blocked = leaf.reshape(-1, lanes, *leaf.shape[1:])
    found = aligned((len(blocked), *leaf.shape[1:], lanes), leaf.dtype)
    found[...] = np.moveaxis(blocked, 1, -1)
    return found


def compiled(
    step: Step,
    own: Any,
    state: Any,
    stream: Any,
    *,
    shared: Sequence[bool] = (),
    lanes: int | None = None,
    machine: Machine | None = None,
) -> Program:
    """Compile a step.

    Args:
        step: ``step(own, state, round, stream) -> state, results`` for one run, in operations that
            JAX can trace; ``round`` is a 32-bit number.
        own, state, stream: trees of arrays of one run and round; shapes and types alone matter.
        shared: which leaves of ``own`` all runs share: they are given once, not in lanes; never the
            first leaf. Empty: none.
        lanes: runs side by side, at least two; None: as many as a vector register holds.
        machine: the CPU to compile for; None: this one.

    Raises:
        Unsupported: if the step needs what is not in the table of primitives.
    """
    machine = machine or machine_code.here()
    lanes = lanes or machine.vector_bytes // _widest((own, state, stream))
    graph = contracted(traced(step, own, state, stream, known=KNOWN))
    counts = [len(jax.tree.leaves(tree)) for tree in (own, state, 0, stream)]
    roles = [role for role, count in enumerate(counts) for _ in range(count)]
    roles[: len(shared)] = [SHARED if is_so else OWN for is_so in shared]

    def make() -> bytes:
        text, scratch = _written(graph, roles, lanes)
        return scratch.to_bytes(8) + machine_code.object_code(text, machine)

    code = machine_code.kept(f"{graph.text()} {roles} {lanes}", machine, make)
    return Program(code, graph, roles, lanes)


def _size(node: Node, role: int, lanes: int) -> int:
    """Bytes of an array in a block and a round."""
    return node.size * np.dtype(node.dtype).itemsize * (1 if role == SHARED else lanes)


def _widest(tree: Any) -> int:
    kinds = (np.dtype(leaf.dtype) for leaf in jax.tree.leaves(tree))
    return max((kind.itemsize for kind in kinds if kind.kind == "f"), default=8)


def _written(graph: Graph, roles: Sequence[int], lanes: int) -> tuple[str, int]:
    """The text of the program, and the bytes of scratch memory it needs."""
    w = llvm.Writer(lanes)
    blocks, span, first, table, _ = w.function.args
    given = [node for node, role in zip(graph.inputs, roles, strict=True) if role != ROUND]
    count = roles.count(STATE)
    arrays = [*given, *graph.outputs[count:]]
    pointers = {node: w.argument(table, place) for place, node in enumerate(given)}
    written = [w.argument(table, len(given) + n) for n in range(len(arrays) - len(given))]

    schedule = scheduled(graph)
    old = [node for node, role in zip(graph.inputs, roles, strict=True) if role == STATE]
    direct = [in_place(graph, schedule, *pair) for pair in zip(old, graph.outputs, strict=False)]
    direct += [node in schedule.kept for node in graph.outputs[count:]]

    def one_round(block: Any, t: Any) -> None:
        def located(node: Node, pointer: Any, role: int) -> Any:
            if role == ROUND:
                return w.round_number(first, t)
            if role == SHARED:
                return llvm.Memory(pointer, 1)
            by_round = w.b.add(w.b.mul(block.base, span), t.base)
            return w.memory(pointer, by_round if role == STREAM else block, node)

        where = {
            node: located(node, pointers.get(node), role)
            for node, role in zip(graph.inputs, roles, strict=True)
        }
        results = zip(graph.outputs[count:], written, strict=True)
        targets = [where[node] for node in old]
        targets += [located(node, pointer, STREAM) for node, pointer in results]
        final = list(zip(graph.outputs, targets, direct, strict=True))
        r = Round(w, graph, schedule, where, {node: to for node, to, now in final if now})
        r.write()
        # What still reads the old state is computed before any of the rest changes.
        ready = [r.result(node) for node in graph.outputs]
        for (node, target, _), source in zip(final, ready, strict=True):
            r.move(node, source, target)

    w.loop(blocks, lambda block: w.loop(span, lambda t: one_round(block, t)))
    return w.finish(), w.scratch
