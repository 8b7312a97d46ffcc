"""Stage 3: decide which arrays get a place in memory, and for how long.

    inlined    computed where it is read: elementwise work with a single reader, views, constants
    register   single numbers
    kept       products, reductions, whatever several loops read: a place in the scratch buffer

The scratch buffer is memory that the program reuses every round. A place in it is given away after
the last loop that reads it, so that the buffer stays in the fastest cache:

    round:   A = P @ X      B = A @ A      C = B + P
    places:  A in 0         B in 1         C in 0, for nothing reads A any more

A new state is written over the old one (`in_place`) if nothing reads the old one afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from driftbandit.lanes.graph import Graph, Node
from driftbandit.lanes.primitives import ELEMENTWISE, LOOPS, VIEWS, KnownIndices

MOST_UNROLLED = 256
MOST_INLINED = 200  # arrays computed inside one another: Python's stack is finite
REREADERS = ("dot_general", "dynamic_slice", "gather")
"""Loops that read a number of an argument more than once, or in any order."""


class Schedule(NamedTuple):
    """How the nodes of a graph are computed."""

    kept: frozenset[Node]
    """Arrays with a place in memory."""
    last: dict[Node, int]
    """The position in ``graph.order`` of the last loop that reads an array."""
    unrolled: frozenset[Node]
    """Kept arrays that are written number by number, since they choose by a constant mask."""
    wanted: dict[Node, set[tuple[int, ...]]]
    """Of products that only unrolled arrays read, the indices that they do read."""


def scheduled(graph: Graph) -> Schedule:
    """Which nodes are kept, and until when."""
    users: dict[Node, list[Node]] = {}
    for node in graph.order:
        for arg in node.args:
            users.setdefault(arg, []).append(node)
    results = set(graph.outputs)
    position = {node: place for place, node in enumerate(graph.order)}
    kept: set[Node] = set()
    readers: dict[Node, set[object]] = {}  # what reads a node, each once for every way it reads
    last: dict[Node, int] = {}
    depth: dict[Node, int] = {}  # how many arrays a node is computed inside of
    for node in reversed([*graph.inputs, *graph.order]):
        found: set[object] = {("output",)} if node in results else set()
        until = len(graph.order) if node in results else -1
        depth[node] = 0
        for user in users.get(node, ()):
            single = user.size == 1 and user.op in ELEMENTWISE
            loop = user in kept or single or user.op in LOOPS
            until = max(until, position[user] if loop else last[user])
            depth[node] = max(depth[node], 0 if loop else depth[user] + 1)
            if user.op in REREADERS or (user.op not in LOOPS and user.size > node.size):
                found |= {(user, "first"), (user, "again")}
            elif loop:
                found.add(user)
            elif user.op in VIEWS:
                found |= {(reader, user) for reader in readers[user]}
            else:
                found |= readers[user]
        readers[node], last[node] = found, until
        several = node in results or len(found) > 1 or depth[node] > MOST_INLINED
        if node.size > 1 and (node.op in LOOPS or (node.op in ELEMENTWISE and several)):
            kept.add(node)
    unrolled = frozenset(n for n in _masked(graph, kept) if n in kept and n.size <= MOST_UNROLLED)
    return Schedule(frozenset(kept), last, unrolled, _wanted(graph, kept, unrolled))


def _masked(graph: Graph, kept: set[Node]) -> set[Node]:
    """Nodes in which, or in what is inlined into them, a constant says which number to take."""
    found: set[Node] = set()
    for node in graph.order:
        inlined = any(arg in found and arg not in kept for arg in node.args)
        if by_mask(node) or (inlined and node.op in (*ELEMENTWISE, *VIEWS)):
            found.add(node)
    return found


def by_mask(node: Node) -> bool:
    """Whether a node takes one of two numbers by a constant mask."""
    return node.op == "select_n" and node.args[0].op == "constant" and node.args[0].size > 1


def taken(node: Node, index: Sequence[int]) -> Node:
    """The argument that the mask takes a number from."""
    return node.args[2 if node.args[0].params["value"][tuple(index)] else 1]


def _wanted(
    graph: Graph, kept: set[Node], unrolled: frozenset[Node]
) -> dict[Node, set[tuple[int, ...]]]:
    found: dict[Node, set[tuple[int, ...]]] = {}

    def look(arg: Node, index: Sequence[int]) -> None:
        if arg in kept:
            found.setdefault(arg, set()).add(tuple(index))
        elif arg.size > 1 or arg.op in VIEWS:  # single numbers are in registers
            read(arg, index)

    def read(node: Node, index: Sequence[int]) -> None:
        """What is read to compute one number of a node."""
        if node.op in VIEWS:
            look(node.args[0], VIEWS[node.op](KnownIndices(), node, index))
        elif by_mask(node):
            look(taken(node, index), index)
        else:
            for arg in node.args:
                look(arg, inside(arg, index))

    for node in unrolled:
        for index in itertools.product(*map(range, node.shape)):
            read(node, index)
    others, sources = set(graph.outputs), dict[Node, set[Node]]()
    for node in graph.order:  # the kept arrays that are read where a node is computed
        below = [{arg} if arg in kept else sources.get(arg, set()) for arg in node.args]
        sources[node] = set[Node]().union(*below)
        if node not in unrolled and (node in kept or node.size == 1 or node in graph.outputs):
            others |= sources[node]
    return {n: w for n, w in found.items() if n.op == "dot_general" and n not in others}


def inside(arg: Node, index: Sequence[Any]) -> list[Any]:
    """The index for an argument, which may be a single number or one long along some axes."""
    return [0 if size == 1 else i for size, i in zip(arg.shape, index, strict=bool(arg.shape))]


def in_place(graph: Graph, schedule: Schedule, old: Node, new: Node) -> bool:
    """Whether a state's new value may be written over the old one as it is computed.

    So it is if nothing reads the old one later, and the loop that computes the new one reads only
    the number that it is about to write.
    """
    if new not in schedule.kept or graph.outputs.count(new) > 1:
        return False
    place = graph.order.index(new)
    return schedule.last[old] < place or (
        schedule.last[old] == place and _same_place(new, old, schedule)
    )


def _same_place(new: Node, old: Node, schedule: Schedule) -> bool:
    """Whether the loop that computes ``new`` reads ``old`` number by number, not through views."""
    waiting = [(new, False)]
    seen = set(waiting)
    while waiting:
        node, elsewhere = waiting.pop()
        if node is old and elsewhere:
            return False
        elsewhere = elsewhere or node.op in VIEWS
        inlined = [a for a in node.args if a not in schedule.kept and a.op not in LOOPS]
        more = {(arg, elsewhere) for arg in inlined} - seen
        seen |= more
        waiting += more
    return new.op in ELEMENTWISE


def put(node: Node) -> tuple[Node, Node] | None:
    """The row's number and the row itself, if a node is ``where(arange == number, row, array)``."""
    if node.op != "select_n" or not node.shape:
        return None
    test, _, row = node.args
    while test.op in ("broadcast_in_dim", "reshape") and test.args[0].shape[:1] == node.shape[:1]:
        if test.params.get("broadcast_dimensions", (0,))[0] != 0:
            return None  # the test is for a column
        test = test.args[0]
    if test.op != "eq" or test.shape != node.shape[:1]:
        return None
    spread = row.op == "broadcast_in_dim" and 0 not in row.params["broadcast_dimensions"]
    counts, number = sorted(test.args, key=lambda arg: arg.op != "iota")
    single = number.size == 1 and number.dtype.startswith(("i", "u"))
    return (number, row) if spread and counts.op == "iota" and single else None
