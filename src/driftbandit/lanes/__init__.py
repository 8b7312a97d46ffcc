"""A compiler for rounds: SIMD lanes and GPU threads are runs.

    step(own, state, round, stream) -> state, results        one run, one round, in JAX or array API
              |
    program.compiled(step, …)  ->  Program: many runs, many rounds, each run as if it were alone

``own`` are arrays that never change, ``state`` is carried from round to round, ``stream`` has one
entry per round, and so have the results. A policy's step is a small straight-line program over
small arrays whose shapes are known, so its jaxpr can be compiled for exactly this use:

    graph        trace the function, inline calls, unroll short scans, merge equal nodes
    contraction  choose which products and sums are rounded together
    schedule     which arrays need a place in memory, and for how long
    loops        write loops, tiles and reductions, number by number
    llvm         for a CPU: a number is a vector of runs
    machine_code LLVM's object code, kept on disk between processes
    program      the arrays of many runs, and the call
    cuda         for a GPU: a thread is a run, and a round is a list of single operations
    kernel       the CUDA C around them
    gpu          NVIDIA's compiler, memory and launches

`primitives` is the table of what can be compiled; `functions` has log and exp. What is not in the
table raises `Unsupported`, and XLA plays instead. Every run does the same IEEE operations in the
same order whatever its neighbors, the vector width or the CPU, so its bits are the same everywhere.
"""

from driftbandit.lanes.graph import Unsupported

__all__ = ["Unsupported"]
