# ruff: noqa: F821, F841, F842
"""What the front end refuses: each error shows the user's line, a caret, what is wrong, and what to
write.
"""

import numpy as np
import pytest

from s2s.errors import S2SError, SourceError, TypeMismatchError, UnsupportedError
from s2s.front import build
from s2s.ir.types import FLOAT, Array, Extent, Unknown

VECTOR = Array("float64", (Extent("x.0", 0, False),))
MATRIX = Array("float64", (Extent("x.0", 0, False), Extent("x.1", 0, False)))


def generator(x):
    yield x


def with_statement(x):
    with open("log.txt") as log:
        return x


class Row(tuple):
    pass


def class_of_tuples(x):
    return Row((x, x))[0]


def class_inside(x):
    class Point:
        pass

    return x


def import_inside(x):
    import nowhere

    return nowhere.sin(x)


def a_set(x):
    return {x, 2.0}


def escaping_lambda(x):
    return lambda t: t + x


def run_time_list(x, n):
    return [x * i for i in range(n)]


def unknown_function(x):
    return np.trim_zeros(x)


def unknown_method(x):
    return x.partition(2)


def attribute_write(x):
    np.something = x
    return x


def reshaped_alias(x):
    y = x.T.reshape(-1)
    y[0] = 1.0
    return x


def recursive(x):
    return recursive(x - 1)


UNSUPPORTED = [
    (generator, [FLOAT], "generators and coroutines", "return the values"),
    (with_statement, [FLOAT], "a `with` statement", "outside the function"),
    (class_of_tuples, [FLOAT], "Row is a class of its own of tuples", "typing.NamedTuple"),
    (class_inside, [FLOAT], "a class inside a function", "module level"),
    (import_inside, [FLOAT], "an import of what is not there", "install it"),
    (a_set, [FLOAT], "a set is an operand, or is returned", "sorted(s)"),
    (escaping_lambda, [FLOAT], "cannot be returned to outside the program", "call it here"),
    (
        unknown_function,
        [FLOAT],
        "s2s does not know np.trim_zeros",
        "write it with functions that s2s knows",
    ),
    (unknown_method, [VECTOR], "the method partition", "write a loop"),
    (attribute_write, [FLOAT], "writing to an attribute", "return the new value"),
    (reshaped_alias, [MATRIX], "may or may not share memory with x", ".copy()"),
    (
        recursive,
        [FLOAT],
        "recursive calls itself on every path",
        "let one path return without calling it",
    ),
]


@pytest.mark.parametrize(
    "function, types, message, remedy", UNSUPPORTED, ids=lambda p: getattr(p, "__name__", "")
)
def test_unsupported_constructs_name_the_line_and_the_remedy(function, types, message, remedy):
    with pytest.raises(UnsupportedError) as caught:
        build(function, types)
    text = str(caught.value)
    assert message in text and f"Instead: {caught.value.remedy}" in text and remedy in text
    assert __file__ in text and "^" in text and f"in {function.__name__}" in text
    assert caught.value.line.number > function.__code__.co_firstlineno


def unbound(x):
    y = x + z
    z = 1.0
    return y


def undefined_name(x):
    return x + no_such_name


def two_kinds(x):
    if x > 0:
        y = (x, x)
    else:
        y = x
    return y


def array_truth(x):
    if x > 0:
        return x
    return -x


def indexes_a_number(x):
    return x[0]


def too_many_names(x):
    a, b = (x, x, x)
    return a


def too_many_indices(x):
    return x[0, 0]


def wrong_arguments(x):
    return undefined_name(x, x)


def float_range(x):
    for i in range(x):
        pass
    return x


def int_in_place(x):
    y = np.zeros(3, np.int64)
    y += 0.5
    return y


MISMATCHED = [
    (unbound, [FLOAT], "z is read before it is bound", "on every path"),
    (undefined_name, [FLOAT], "the name no_such_name is not defined", "define it"),
    (
        two_kinds,
        [FLOAT],
        "y is a tuple of 2 on one path and a number (float64) on another",
        "one kind of value",
    ),
    (array_truth, [VECTOR], "the truth of an array is ambiguous", ".any() or .all()"),
    (indexes_a_number, [FLOAT], "x is a number and cannot be indexed", "index an array"),
    (too_many_names, [FLOAT], "3 values for 2 names", "as many names"),
    (too_many_indices, [VECTOR], "2 indices for an array of 1 axes", "as many indices"),
    (
        wrong_arguments,
        [FLOAT],
        "undefined_name(): too many positional arguments",
        "the arguments that it takes",
    ),
    (float_range, [FLOAT], "range of a float64", "int()"),
    (int_in_place, [FLOAT], "float64 values cannot be written into an array of int64", ".astype"),
]


@pytest.mark.parametrize(
    "function, types, message, remedy", MISMATCHED, ids=lambda p: getattr(p, "__name__", "")
)
def test_mismatches_name_the_line_and_the_remedy(function, types, message, remedy):
    with pytest.raises(TypeMismatchError) as caught:
        build(function, types)
    text = str(caught.value)
    assert message in text and f"Instead: {caught.value.remedy}" in text and remedy in text
    assert __file__ in text and "^" in text


def test_the_caret_is_under_what_is_meant():
    with pytest.raises(UnsupportedError) as caught:
        build(unknown_function, [FLOAT])
    shown = str(caught.value).splitlines()
    assert shown[1] == "    return np.trim_zeros(x)"
    assert shown[2] == "           ^^^^^^^^^^^^^^^^"


def test_a_generic_array_and_its_alias_are_told_apart_only_at_a_call():
    def aliased(x):
        y = x
        y += 1
        return x

    with pytest.raises(UnsupportedError, match="may be a number or an array"):
        build(aliased, [Unknown("x")])


def test_an_element_or_row_kept_across_a_write_is_told_apart_only_at_a_call():
    def kept(x):
        t = x[0]
        x[0] = 2.0
        return t

    assert build(kept, [VECTOR])
    with pytest.raises(UnsupportedError, match="may or may not share memory with t"):
        build(kept, [Unknown("x")])


def test_a_function_without_source_is_refused():
    namespace = {}
    exec("def f(x):\n    return x", namespace)
    with pytest.raises(SourceError) as caught:
        build(namespace["f"], [FLOAT])
    assert "the source of f cannot be found" in str(caught.value)
    assert "define it with `def` or `lambda` in a file" in str(caught.value)


def test_a_builtin_is_refused():
    with pytest.raises(SourceError, match="not written in Python"):
        build(id, [VECTOR])


def test_too_few_arguments_are_refused():
    with pytest.raises(S2SError, match="is given no argument n"):
        build(run_time_list, [FLOAT])
