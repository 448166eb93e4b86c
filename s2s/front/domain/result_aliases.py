"""Aliasing among the results of a function: the arrays, lists and objects that are one object or
share memory.

    def state(n):
        v = np.zeros(n)
        return v, v          # (0, 0): the caller binds both names to one cell
        return v, v[1:]      # they overlap: the function is run in place, on the caller's cells

A `call` op hands Values back, which have no identity.  What is returned under several names is
noted with the function as a tree that numbers the cells (`identities`), by which the caller puts
one cell in all the places (`rebind`).  Where different cells share memory, no op could say so, and
the caller runs the function in place.

Considered: running every function in place that returns an array twice.  It needs no tree; but
`return h, h`, the state and the output of a cell of a recurrent network, is among the most common
of results, and the reader wants to see the call.
"""

from __future__ import annotations

from collections.abc import Iterator

from .heap import Cell, Container, Heap, is_shared


def identities(heap: Heap, binding) -> object:
    """A tree of the structure of `binding` that numbers its cells, equal numbers for the same cell;
    None if all differ.

    A node is (number, children) for a cell or a container, (None, children) for a tuple, and None
    for anything else.
    """
    numbers: dict = {}
    repeated = False

    def node(binding):
        nonlocal repeated
        match binding:
            case Cell() | Container():
                if binding in numbers:
                    repeated = True
                    return numbers[binding], ()
                numbers[binding] = len(numbers)
                return numbers[binding], tuple(map(node, _members(heap, binding)))
            case tuple():
                return None, tuple(map(node, binding))
        return None

    tree = node(binding)
    return tree if repeated else None


def rebind(heap: Heap, binding, tree):
    """Merge the cells of `binding`, fresh from a call, that have the same number in `tree`."""
    if tree is None:
        return binding
    cells: dict[int, Cell | Container] = {}

    def again(binding, tree):
        if tree is None:
            return binding
        number, children = tree
        if number in cells:
            return cells[number]
        members = [again(member, child) for member, child in zip(_members(heap, binding), children)]
        match binding:
            case tuple():
                return binding._make(members) if hasattr(binding, "_make") else tuple(members)
            case Container():
                binding.initial = dict(zip(binding.members, members))
                heap.contents[binding] = binding.initial
            case Cell() if heap.items(binding) is not None:
                heap.contents[binding] = tuple(members)
        if number is not None:
            cells[number] = binding
        return binding

    return again(binding, tree)


def is_shared_inside(heap: Heap, binding) -> bool:
    """Whether parts of a result share memory without being one object, or are arrays of rank 0.

    An array of no axes would come back from a call as a number.
    """
    cells = list(dict.fromkeys(_cells(heap, binding, ())))
    if any(cell.root.alike or _has_no_axes(heap, cell) for cell in cells):
        return True
    seen: set = set()
    for cell in cells:
        memory = cell.family() | cell.root.held
        if seen & memory:
            return True
        seen |= memory
    return False


def sharing_pairs(leaves: list) -> tuple[tuple[int, int], ...]:
    """The positions of distinct leaves that may share memory."""
    memory = [
        leaf.family() | leaf.root.held if isinstance(leaf, Cell) else frozenset() for leaf in leaves
    ]
    return tuple((j, k) for k in range(len(leaves)) for j in range(k)
                 if leaves[j] is not leaves[k] and memory[j] & memory[k])


def _cells(heap: Heap, binding, around: tuple) -> Iterator[Cell | Container]:
    """The cells that a binding holds; `around` are the containers that enclose it."""
    if isinstance(binding, (Cell, Container)):
        yield binding
        if binding in around:
            return
        around = (*around, binding)
    for member in _members(heap, binding):
        yield from _cells(heap, member, around)


def _members(heap: Heap, binding) -> tuple:
    match binding:
        case Container():
            return tuple(binding.members.values())
        case Cell():
            return heap.items(binding) or ()
        case tuple() | list():
            return tuple(binding)
    return ()


def _has_no_axes(heap: Heap, cell: Cell | Container) -> bool:
    return isinstance(cell, Cell) and heap.items(cell) is None and not is_shared(heap.type_of(cell))
