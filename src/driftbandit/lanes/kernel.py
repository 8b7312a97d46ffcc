"""Stage 5, on a GPU: the kernel around a recorded round: numbers in, a loop of rounds, numbers out.

    role     in memory                 in the kernel
    same     in the call               operands from the constant bank
    system   systems × numbers         in shared memory, read wherever it is used
    run      numbers × runs            a register; an array: read once a round
    state    numbers × runs            registers, from the first round to the last
    ring     numbers × runs            in memory: a state of which a round replaces one row
    stream   rounds × numbers × runs   read once a round
    round    –                         the number of the round

A square state that is symmetric before a round and after it is held as one half. The round is
recorded as if every such state stayed symmetric, and every other long one were a ring; and recorded
again without those whose results are not the same value on both sides of the diagonal, or are not
``where(arange == place, new, old)``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from driftbandit.lanes.contraction import contracted
from driftbandit.lanes.cuda import TYPES, Outside, Own, Writer
from driftbandit.lanes.graph import Graph, Node, Step, Unsupported, traced
from driftbandit.lanes.loops import Round
from driftbandit.lanes.primitives import KNOWN
from driftbandit.lanes.schedule import scheduled

MOST_BYTES = 30_000  # that all runs share: they travel in the call
MOST_NEAR = 100_000  # bytes of shared memory for a block's systems: two blocks fit
THREADS, WARP = 128, 32  # of a block, and at least
SHORT = 32  # numbers of a state that are in registers, whatever a round does to them

TEXT = """
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#define FORGET(i) asm volatile("" : "+r"(i))
struct Same {{ {same} }};
{tables}
extern "C" __global__ void __launch_bounds__({bounds})
rounds(int R, int span, unsigned first, int begin, {arguments}) {{
{near}
__syncthreads();
const int r = blockIdx.x * blockDim.x + threadIdx.x;
if (r >= R) return;
{before}
#pragma unroll 1
for (int t = 0; t < span; t++) {{
const unsigned round_ = first + t;
{lines}
}}
{after}
}}
"""
NEAR = """
extern __shared__ {kind} near[];
const int left = blockIdx.x * blockDim.x, right = min(R, left + (int)blockDim.x) - 1;
const int lowest = system_of[left], many = system_of[right] - lowest + 1;
for (int i = threadIdx.x; i < many * {size}; i += blockDim.x)
near[i] = systems[(long long)lowest * {size} + i];
"""


def kernel(
    step: Step, own: Any, state: Any, stream: Any, *, symmetric: Any, one_system: bool
) -> Kernel:
    """The kernel of a step whose ``own`` is (run, shared, system).

    Args:
        step, own, state, stream: as in `program.compiled`.
        symmetric: for the leaves of (system, state), whether they are symmetric for every run.
        one_system: whether all runs have the same system.
    """
    counts = [len(jax.tree.leaves(tree)) for tree in (*own, state, 0, stream)]
    kinds = "run", "same", "same" if one_system else "system", "state", "round", "stream"
    roles = [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
    found = frozenset(n + sum(counts[:2]) for n, yes in enumerate(symmetric) if yes)
    graph = contracted(traced(step, own, state, stream, known=KNOWN))
    return Kernel(graph, roles, found)


class Kernel:
    """CUDA C that plays a span of rounds: ``rounds(R, span, first, begin, arrays…)``.

    Arrays are the inputs that are a run's, a state or a stream, then results, then ``systems`` and
    ``system_of`` (which rises from run to run), then the bytes that all runs share. Every state is
    followed by what it is at the beginning, systems × numbers: with ``begin`` it starts from there.

    Args:
        graph: one round of one run; its results are the states, then what is written every round.
        roles: of every input.
        symmetric: inputs (numbers) that are exactly symmetric at the start, for every run.
    """

    def __init__(self, graph: Graph, roles: Sequence[str], symmetric: frozenset[int]) -> None:
        self.graph, self.roles = graph, list(roles)
        self.states = [n for n, role in enumerate(roles) if role == "state"]
        used = graph.used()
        self.same, self.systems = (
            [n for n, given in enumerate(roles) if given == role and used[n]]
            for role in ("same", "system")
        )
        self.many = "system" in roles
        kinds = [x.dtype for x, role in zip(graph.inputs, roles, strict=True) if role == "system"]
        self._kind = next((kind for kind in kinds if kind.startswith("f")), "float64")
        sizes = [graph.inputs[n].size for n in self.systems]
        self.size = sum(sizes) | 1  # odd: the same number of several systems is in different banks
        self._starts = dict(zip(self.systems, np.cumsum([0, *sizes]).tolist(), strict=False))
        self._staged: set[int] = set()
        self._memory: dict[int, Outside] = {}
        if sum(8 * graph.inputs[n].size for n in self.same) > MOST_BYTES:
            raise Unsupported(f"more than {MOST_BYTES} bytes that all runs share")
        self.symmetric = symmetric
        self.rings = {n for n in self.states if graph.inputs[n].size > SHORT} - symmetric
        while True:
            writer, results = self._recorded()
            kept = {n: self._kept(writer, n, results[i]) for i, n in enumerate(self.states)}
            wrong = {n for n, values in kept.items() if values is None}
            if not wrong:
                break
            self.symmetric, self.rings = self.symmetric - wrong, self.rings - wrong
        held = sum(len(set(self._held(n))) for n in self.states if n not in self.rings)
        # Blocks that fit on a multiprocessor at once limit the registers; measured on an H200.
        blocks = 6 if held <= 16 else 4 if held <= 32 else 1
        results[: len(kept)] = [values for values in kept.values() if values is not None]
        self.text = self._text(writer, results, blocks)

    def shape(self, runs: int, system_of: Any = None) -> tuple[int, int, int]:
        """How to launch it: blocks, threads of each, bytes of shared memory for the systems."""
        threads, near = 2 * THREADS, 2 * MOST_NEAR if system_of is not None else 0
        while near > MOST_NEAR and threads > WARP:
            threads //= 2
            first = np.arange(0, runs, threads)
            last = np.minimum(first + threads, runs) - 1
            width = np.dtype(self._kind).itemsize * self.size
            near = int(np.max(system_of[last] - system_of[first]) + 1) * width
        threads = min(threads, THREADS)
        return -(-runs // threads), threads, near

    def same_bytes(self, arrays: Mapping[int, np.ndarray]) -> bytes:
        """What all runs share, by the number of the input: the kernel's last argument."""
        kinds = {n: self.graph.inputs[n].dtype for n in self.same}
        parts = [np.asarray(arrays[n], kind).tobytes() for n, kind in kinds.items()]
        return b"".join(part + bytes(-len(part) % 8) for part in parts)

    def systems_array(self, arrays: Mapping[int, np.ndarray], count: int) -> np.ndarray:
        """What the runs of a system share, by the number of the input: systems × `size`."""
        found = np.empty((count, self.size), self._kind)
        found[:, -1] = 0  # may be a gap
        for n in self.systems:
            flat = np.reshape(arrays[n], (count, -1))
            place = slice(self._starts[n], self._starts[n] + flat.shape[1])
            found[:, place] = flat
        return found

    def check(self, arrays: Mapping[int, np.ndarray], systems: int, runs: int) -> None:
        """Refuse systems, given by the number of the input, that shared memory cannot hold."""
        most = min(systems, (WARP - 2) // runs + 2)  # of a warp, which may begin anywhere
        if most * self.size * np.dtype(self._kind).itemsize > 2 * MOST_NEAR:
            raise Unsupported("systems too large for shared memory")
        for x in (arrays[n] for n in self.systems):
            if x.dtype.kind != "f" and (x.astype(self._kind).astype(x.dtype) != x).any():
                raise Unsupported("whole numbers of a system that its floats cannot hold")

    def _side(self, n: int) -> int:
        return self.graph.inputs[n].shape[0] if n in self.symmetric else 0

    def _held(self, n: int) -> list[int]:
        """For every number of an input the place of the one that stands for it."""
        side = self._side(n)
        if not side:
            return list(range(self.graph.inputs[n].size))
        return [min(i, j) * side + max(i, j) for i in range(side) for j in range(side)]

    def _kept(self, w: Writer, n: int, values: list[int]) -> list[int] | None:
        """A state's new values, of a ring the place and the row; None if it is neither."""
        if n not in self.rings:
            mirrored = all(
                values[place] == values[held] for place, held in enumerate(self._held(n))
            )
            return values if mirrored else None
        x = self.graph.inputs[n]
        old, width = self._where(w, n, x), x.size // x.shape[0]
        found = set()
        for place, value in enumerate(values):
            op, _, args, _ = w.operations[value]
            if op != "select" or args[2] != w.load(old, place, x.dtype):
                return None
            op, _, compared, _ = w.operations[args[0]]
            index = [v for v in compared if w.known(v) != place // width]
            if op != "eq" or len(index) != 1 or w.operations[index[0]].dtype.startswith("f"):
                return None
            found.add((index[0], place % width, args[1]))
        index = list({where for where, _, _ in found})
        row = [new for _, _, new in sorted(found, key=lambda each: each[1])]
        return [*index, *row] if (len(index), len(row)) == (1, width) else None

    def _where(self, w: Writer, n: int, x: Node) -> Any:
        """Where an input is for the writer."""
        role, side = self.roles[n], self._side(n)
        if role == "round":
            return w.record("name", x.dtype, data="round_")
        if (role == "state" and n not in self.rings) or (role == "run" and x.size == 1):
            return Own([w.record("name", x.dtype, data=f"a{n}_{p}") for p in self._held(n)])
        if role == "system":
            at = f"({TYPES[x.dtype]})near[own + {self._starts.get(n)} + "
            return Outside(lambda place: f"{at}{place}]", True, side)
        if role == "same":

            def at_same(place: Any) -> str:
                if isinstance(place, int):
                    return f"same.a{n}[{place}]"
                self._staged.add(n)  # threads read different places: the constant bank is slow
                return f"near{n}[{place}]"

            return Outside(at_same, True, side)
        start = f"(long long)t * {x.size} + " if role == "stream" else "0LL + "
        if n not in self._memory:
            self._memory[n] = Outside(lambda place: f"a{n}[({start}{place}) * R + r]", False, side)
        return self._memory[n]

    def _recorded(self) -> tuple[Writer, list[list[int]]]:
        """A writer that has recorded the round, and the values of its results."""
        w = Writer()
        inputs = {x: self._where(w, n, x) for n, x in enumerate(self.graph.inputs)}
        r = Round(w, self.graph, scheduled(self.graph), inputs, {})
        r.write()
        results: list[list[int]] = []
        for x in self.graph.outputs:
            results.append([])
            r.nest(x.shape, functools.partial(lambda x, i: results[-1].append(r.at(x, i)), x))
        return w, results

    def _text(self, w: Writer, results: list[list[int]], blocks: int) -> str:
        inputs = self.graph.inputs
        fresh = "own = base; FORGET(own);" if self.many else ""
        lines, flat = w.text([value for result in results for value in result], fresh)
        rest = iter(flat)
        named = [[next(rest) for _ in result] for result in results]
        arguments, near, before, after, change = [], [], [], [], []
        for n, x in enumerate(inputs):
            kind, role = TYPES[x.dtype], self.roles[n]
            if role in ("run", "stream", "state"):
                arguments.append(f"{'' if role == 'state' else 'const '}{kind}* __restrict__ a{n}")
            if role == "state":
                arguments.append(f"const {kind}* __restrict__ b{n}")
                fetch = f"begin ? b{n}[{x.size} * system + p] : a{n}[p * R + r]"
                before.append(f"const auto first{n} = [&](long long p) {{ return {fetch}; }};")
            if n in self.rings:
                place, *row = named[self.states.index(n)]
                for i, name in enumerate(row):
                    to = f"a{n}[({place} * {len(row)}LL + {i}) * R + r]"
                    lines.append(f"if ((unsigned long long){place} < {x.shape[0]}) {to} = {name};")
                before.append(f"for (long long p = 0; begin && p < {x.size}; p++)")
                before.append(f"a{n}[p * R + r] = first{n}(p);")
            elif role == "state" or (role == "run" and x.size == 1):
                places = sorted(set(self._held(n)))
                at = "first{}({})" if role == "state" else "a{}[{}LL * R + r]"
                before += [f"{kind} a{n}_{p} = {at.format(n, p)};" for p in places]
            if role == "state" and n not in self.rings:
                new = named[self.states.index(n)]
                lines += [f"const {kind} n{n}_{p} = {new[p]};" for p in places]
                change += [f"a{n}_{p} = n{n}_{p};" for p in places]
                after += [f"a{n}[{p}LL * R + r] = a{n}_{q};" for p, q in enumerate(self._held(n))]
            if n in self._staged:
                near.append(f"__shared__ {kind} near{n}[{x.size}];")
                near.append(f"for (int i = threadIdx.x; i < {x.size}; i += blockDim.x)")
                near.append(f"near{n}[i] = same.a{n}[i];")
        for n, x in enumerate(self.graph.outputs[len(self.states) :]):
            arguments.append(f"{TYPES[x.dtype]}* __restrict__ o{n}")
            for p, name in enumerate(named[len(self.states) + n]):
                lines.append(f"o{n}[((long long)t * {x.size} + {p}) * R + r] = {name};")
        if self.many:
            kind = TYPES[self._kind]
            arguments += [
                f"const {kind}* __restrict__ systems",
                "const int* __restrict__ system_of",
            ]
            near.append(NEAR.format(kind=kind, size=self.size))
            before.append(f"const int base = (system_of[r] - lowest) * {self.size}; int own;")
        system = "system_of[r]" if self.many else "0"
        before.insert(0, f"const long long system = {system};")
        if self.same:
            arguments.append("const __grid_constant__ Same same")
        same = [f"alignas(8) {TYPES[inputs[n].dtype]} a{n}[{inputs[n].size}];" for n in self.same]
        return TEXT.format(
            same=" ".join(same),
            tables="\n".join(f"__constant__ {t.replace('@', n)}" for t, n in w.tables.items()),
            bounds=f"{THREADS}, {blocks}",
            arguments=", ".join(arguments),
            near="\n".join(near),
            before="\n".join(before),
            lines="\n".join([fresh, *lines, *change]),
            after="\n".join(after),
        )
