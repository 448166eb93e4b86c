"""What is recomputed comes after what it is recomputed from, however long the chain."""

from s2s.transform.reverse.tape import operands_first


def test_a_chain_longer_than_the_stack():
    length = 50_000
    assert list(operands_first([length], {0}, lambda v: [v - 1])) == list(range(1, length + 1))


def test_each_once_and_in_the_order_of_the_operands():
    made_of = {"f": "de", "e": "cb", "d": "ba", "c": "a", "b": "", "a": ""}
    done = {"a"}
    assert list(operands_first("fd", done, made_of.__getitem__)) == ["b", "d", "c", "e", "f"]
    assert done == set("abcdef")
