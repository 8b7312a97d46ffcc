"""Stage 2: choose which products are rounded together with a sum.

    add(mul(x, y), z)  ->  fma(x, y, z)      rounded once instead of twice

A compiler that is free to do this does it here and not there, depending on the CPU and on how many
numbers it handles at once. We choose, once and for all, in the graph: a product that only one sum
reads becomes part of that sum (the left one, if both terms are such products).
"""

from __future__ import annotations

from collections import Counter

from driftbandit.lanes.graph import Graph, Node, needed


def contracted(graph: Graph) -> Graph:
    """The graph with fused multiply-adds in place of products that one sum reads."""
    uses = Counter(arg for node in graph.order for arg in node.args)
    uses.update(graph.outputs)
    replaced: dict[Node, Node] = {}
    order: list[Node] = []

    def product(node: Node, shape: tuple[int, ...]) -> bool:
        return node.op in ("mul", "square") and uses[node] == 1 and node.shape == shape

    for node in graph.order:
        args = [replaced.get(arg, arg) for arg in node.args]
        made = Node(node.op, node.params, args, node.shape, node.dtype)
        if node.op in ("add", "sub") and node.dtype.startswith("f"):
            for place in (0, 1):
                inner, other = node.args[place], args[1 - place]
                if product(inner, node.shape):
                    x, y = (args[place].args * 2)[:2]
                    minus = node.op == "sub"
                    signs = {
                        "minus_product": minus and place == 1,
                        "minus_sum": minus and not place,
                    }
                    made = Node("fma", signs, [x, y, other], node.shape, node.dtype)
                    break
        replaced[node] = made
        order.append(made)
    outputs = [replaced.get(node, node) for node in graph.outputs]
    return Graph(graph.inputs, outputs, needed(order, outputs))
