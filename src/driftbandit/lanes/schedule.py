"""Stage 3: decide which arrays get a place in memory, and for how long.

    inlined    computed where it is read: elementwise work with a single reader, views, constants
    register   single numbers
    kept       products, reductions, whatever several loops read: a place in the scratch buffer

A place is given away after the last loop that reads it, so that the buffer stays in the fastest
cache.
"""

from __future__ import annotations

from typing import NamedTuple

from driftbandit.lanes.graph import Graph, Node
from driftbandit.lanes.primitives import ELEMENTWISE, LOOPS, VIEWS

REREADERS = ("dot_general", "dynamic_slice", "gather")
"""Loops that read a number of an argument more than once, or in any order."""


class Schedule(NamedTuple):
    """How the nodes of a graph are computed."""

    kept: frozenset[Node]
    """Arrays with a place in memory."""
    last: dict[Node, int]
    """The position in ``graph.order`` of the last loop that reads an array."""


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
    for node in reversed([*graph.inputs, *graph.order]):
        found: set[object] = {("output",)} if node in results else set()
        until = len(graph.order) if node in results else -1
        for user in users.get(node, ()):
            single = user.size == 1 and user.op in ELEMENTWISE
            loop = user in kept or single or user.op in LOOPS
            until = max(until, position[user] if loop else last[user])
            if user.op in REREADERS or (user.op not in LOOPS and user.size > node.size):
                found |= {(user, "first"), (user, "again")}
            elif loop:
                found.add(user)
            elif user.op in VIEWS:
                found |= {(reader, user) for reader in readers[user]}
            else:
                found |= readers[user]
        readers[node], last[node] = found, until
        several = node in results or len(found) > 1
        if node.size > 1 and (node.op in LOOPS or (node.op in ELEMENTWISE and several)):
            kept.add(node)
    return Schedule(frozenset(kept), last)


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


def _same_place(node: Node, old: Node, schedule: Schedule) -> bool:
    """Whether a node is computed from ``old``, if at all, number by number."""
    if node.op not in ELEMENTWISE:
        return False
    inner = [arg for arg in node.args if arg not in schedule.kept and arg.size > 1]
    return all(
        arg.shape == node.shape if arg is old else not arg.args or _same_place(arg, old, schedule)
        for arg in inner
    )
