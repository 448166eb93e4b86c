"""Objects that refer to one another, in circles too; identity; loops that follow a structure."""

from __future__ import annotations

import numpy as np
import pytest
from differences import differences
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([0.3, -0.2, 0.7])
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


class Node:
    def __init__(self, weight, left=None, right=None, parent=None, following=None):
        self.weight = weight
        self.left, self.right, self.following = left, right, following
        self.parent, self.children = parent, []
        if parent is not None:
            parent.children.append(self)

    def total(self):
        return self.weight + sum(child.total() for child in self.children)

    def depth(self):
        count, node = 0, self.parent
        while node is not None:
            count += 1
            node = node.parent
        return count


class World:
    def __init__(self, rate):
        self.rate, self.time, self.members = rate, 0.0, []

    def add(self, member):
        member.world = self
        self.members.append(member)


class Member:
    def step(self):
        self.world.time = self.world.time + self.world.rate


@program
def children_know_their_parent(x):
    root = Node(x[0])
    last = Node(x[2], parent=Node(x[1], parent=root))
    return root.total() ** 2 + last.depth() * x[0]


@program
def members_write_into_what_holds_them(x):
    world = World(x[0] * x[1])
    world.add(Member())
    world.add(Member())
    for _ in range(4):
        for member in world.members:
            member.step()
    if world.time < x[2]:
        world.members[0].step()
    return world.time**2


@program
def an_object_that_lies_in_its_own_list(x):
    world = World(x[0])
    world.members = [world, world]
    if x[0] > 0:
        world.members[1].time = x[1] * x[1]
    return world.time


def messages(node, source):
    return node.weight * (1.0 + sum(messages(n, node) for n in node.children if n is not source))


@program
def messages_in_a_tree_without_a_root(x):
    a, b, c = Node(x[0]), Node(x[1]), Node(x[2])
    a.children, b.children, c.children = [b], [a, c], [b]
    return messages(b, None) + messages(a, None)


def weight_at(node, target):
    if node is None:
        return 0.0
    if node is target:
        return node.weight
    return weight_at(node.left, target) + 2 * weight_at(node.right, target)


@program
def identity_in_a_function_that_calls_itself(x):
    first, last = Node(x[1]), Node(x[1])
    return weight_at(Node(x[0], first, Node(x[2], last)), last)


@program
def places_of_objects_in_a_list(x):
    a, b = Node(x[0]), Node(x[0])
    nodes = [a, b]
    result = x[nodes.index(b)] * x[2]
    nodes.remove(b)
    nodes.append(Node(x[2]))
    if b not in nodes and a in nodes:
        result += x[0] * nodes.count(a)
    return result + sum(node.weight for node in nodes)


@program
def a_linked_list_is_followed(x):
    node, total = Node(x[0], following=Node(x[1], following=Node(x[2]))), 1.0
    while node is not None:
        total = total * node.weight + 1
        node = node.following
    return total


@program
def a_stack_of_nodes(x):
    stack = [Node(x[0], Node(x[1]), Node(x[2], Node(x[0] * x[1])))]
    total = 0.0
    while stack:
        node = stack.pop()
        total = 0.5 * total + node.weight**2
        stack.extend(n for n in (node.left, node.right) if n is not None)
    return total


@program
def names_that_run_out(x):
    names, weights, total = ["a", "b", "c"], {"a": x[0], "b": x[1], "c": x[2]}, 0.0
    while names:
        total = total * 0.5 + weights[names.pop()] ** 2
        if total > 0.4:
            break
    else:
        total = total + x[1]
    return total


@program
def arrays_that_are_one_or_two(x):
    def kernel(a, b):
        return np.sum(a * b) if a is b else np.sum(a - b)

    y = np.array([x[0], x[1], 1.0])
    return kernel(x, x) * kernel(y, x) + kernel(y, y)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_object_graph(f):
    judge(f, X)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS[::4], ids=lambda f: f.__name__)
def test_object_graph_compiled(f):
    judge(f, X, compiled=True, second=False)


def test_identity_with_what_lies_outside_a_recursive_function():
    def f(x):
        last = Node(x[1])

        def weight(node):
            if node is None:
                return 0.0
            if node is last:
                return node.weight
            return weight(node.left) + 2 * weight(node.right)

        return weight(Node(x[0], Node(x[1]), last))

    np.testing.assert_allclose(s2s.grad(f)(X), differences(f, X), rtol=1e-7)


def test_a_while_that_data_lead_through_a_structure_is_refused():
    def f(x):
        node, total = Node(x[0], Node(x[1]), Node(x[2], Node(x[0] * x[1]))), 0.0
        while node is not None:
            total += node.weight
            node = node.left if total < 0.1 else node.right
        return total

    with pytest.raises(S2SError, match="before the loop and a Maybe"):
        s2s.grad(f)(X)


@pytest.mark.parametrize("question", [
    lambda nodes: nodes[1] in nodes, lambda nodes: nodes.index(nodes[1])])
def test_places_of_objects_in_a_list_of_run_time_length_are_refused(question):
    def f(x):
        return x[0] * question([Node(v) for v in x if v > -1])

    with pytest.raises(S2SError, match="which item of a list is this Node"):
        s2s.grad(f)(X)


# ------------------------------------------------------------------- attributes made along the way


class Layer:
    def __init__(self, weight):
        self.weight = weight

    def forward(self, x):
        self.x = x
        return x * self.weight

    def backward(self, y_bar):
        return y_bar * self.x


class Bunch:
    def __init__(self, **members):
        self.__dict__.update(members)


def made_in_each_trip(x):
    layer, total = Layer(x[0]), 1.0
    for k in range(len(x)):
        total = layer.forward(total) + layer.backward(x[k])
    while total > 1e-2:
        total = layer.forward(total) * 0.5
    layer.x = total
    return layer.x * x[1]


def made_in_an_inner_loop_and_a_branch(x):
    layer, total = Layer(x[0]), 0.0
    for k in range(len(x)):
        for _ in range(k):
            layer.inner = x[1] * k + layer.weight + total
            total += layer.inner
        if total > 0.1:
            layer.found = total
    layer.inner = total
    return x[2] * layer.inner


def made_in_counted_trips(x):
    layer = Layer(x[0])
    for k in range(3):
        layer.last = x[1] * k + layer.weight
    return x[2] * layer.last


def written_through_their_dict(x):
    bunch = Bunch(a=x[0], b=x[1])
    members = bunch.__dict__
    bunch.a = x[2] * bunch.b
    members["b"] = members["a"] * x[0]
    vars(bunch)["c"] = 3 * x[1]
    copied = dict(vars(bunch))
    bunch.c = bunch.c * 2
    if x[0] > 0:
        members["a"] = x[1] ** 2
    return bunch.a + 10 * bunch.b + 100 * bunch.c + copied["c"] + sum(members.values())


@pytest.mark.parametrize("f", [made_in_each_trip, made_in_an_inner_loop_and_a_branch,
                               made_in_counted_trips, written_through_their_dict])
def test_attributes_made_along_the_way(f):
    judge(f, X)


@pytest.mark.compile
def test_attributes_made_along_the_way_compiled():
    judge(made_in_each_trip, X, compiled=True, second=False)


def perhaps_with_x(x):
    layer = Layer(x[0])
    if x[0] > 0:
        layer.x = x[1]
    return layer


@pytest.mark.parametrize("question", [
    lambda x: perhaps_with_x(x).x,
    lambda x: hasattr(perhaps_with_x(x), "x") * x[0],
    lambda x: len(vars(perhaps_with_x(x))) * x[0],
])
def test_what_a_branch_may_not_have_made_cannot_be_asked_for(question):
    with pytest.raises(S2SError, match="the attribute x is made by a branch, or by a loop"):
        s2s.grad(question)(X)


# ----------------------------------------------------------------------- lists and dicts of places


def keys_known_at_run_time(x):
    count = sum(int(v > 0) for v in x)
    moves = {(count, 0): x[0], (count - 1, 1): x[1], (0, count): x[2]}
    least = min(moves, key=moves.get)
    again = {**{1: x[0]}, count: x[1] ** 2}
    again[4] = x[0] * x[2]
    return moves[least] * least[0] + moves[0, 2] * sum(moves.values()) + sum(
        (k + 1) * v for k, v in again.items()) + len(again) * x[1]


def places_filled_later(x):
    states = [None] * 4
    states[-1] = {"mean": x[0], "all": x}
    for k in reversed(range(3)):
        states[k] = {"mean": states[k + 1]["mean"] * x[1], "all": states[k + 1]["all"] * k}
    squares = [None] * 3
    for k in range(3):
        squares[k] = x[k] ** 2
    return sum(s["mean"] + np.sum(s["all"]) for s in states) + max(squares)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [keys_known_at_run_time, places_filled_later])
def test_lists_and_dicts_of_places(f):
    judge(f, X)
