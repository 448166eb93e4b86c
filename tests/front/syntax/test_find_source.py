"""Finding the definition behind a function object, whatever the function is."""

import ast
import functools
import inspect
import linecache

import numpy as np
import pytest

from s2s.errors import SourceError
from s2s.front import build, build_from_text, load_text, parse_type
from s2s.front.syntax.find_source import definition_of
from s2s.ir.interpret import interpret
from s2s.ir.types import FLOAT, Array, Extent, Scalar, Tape, Tuple, Unknown

SAME_LINE = (lambda x: x + 1, lambda x: x + 2, (lambda x: lambda x: x + 3)(0), lambda x, y=2: x + y)


def maker(a, b):
    return lambda x: x + a, lambda x: x + b


def decorate(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


@decorate
@decorate
def decorated(x):
    return x * 7


@pytest.mark.parametrize("k, expected", list(enumerate([6.0, 7.0, 8.0, 7.0])))
def test_lambdas_on_one_line_are_told_apart(k, expected):
    assert interpret(build(SAME_LINE[k], [FLOAT]), 5.0, *([2] if k == 3 else [])) == expected


def test_closures_on_one_line_are_told_apart():
    first, second = maker(10.0, 20.0)
    for function, expected in ((first, 11.0), (second, 21.0)):
        built = build(function, [FLOAT])
        assert interpret(built, 1.0, *(get() for get in built.captures.values())) == expected


def test_wrapped_functions_are_unwrapped():
    assert interpret(build(decorated, [FLOAT]), 2.0) == 14.0


def looked_on(function, module, marks):
    """A wrapper as tools make it that look on, of a text that nobody has: `functools.wraps`, and
    attributes to know it by.
    """
    namespace = {"__name__": module, "function": function}
    exec("def wrapper(*args, **keywords):\n    tool.count += 1\n"
         "    return function(*args, **keywords)", namespace)
    wrapper = functools.update_wrapper(namespace["wrapper"], function)
    vars(wrapper).update(marks)
    return wrapper


@pytest.mark.parametrize("module, marks, is_read", [
    ("line_profiler.profiler_mixin", {}, True),
    ("__main__", {"__beartype_wrapper": True}, True),
    ("somebodys", {}, False),
])
def test_profilers_and_checks_of_annotations_are_looked_through(module, marks, is_read):
    function = looked_on(triple, module, marks)
    if is_read:
        assert interpret(build(function, [FLOAT]), 2.0) == 6.0
        assert interpret(build(lambda x: function(x) + function(x=x), [FLOAT]), 2.0) == 12.0
    else:
        with pytest.raises(SourceError, match="the source of triple cannot be found"):
            build(function, [FLOAT])


def triple(x):
    return x * 3


def test_a_tool_has_taken_the_decorator_away():
    tree = ast.parse(inspect.getsource(decorated_for_a_tool))
    ast.increment_lineno(tree, decorated_for_a_tool.__code__.co_firstlineno - 1)
    tree.body[0].decorator_list = []
    tree.body[0].body.insert(0, ast.copy_location(ast.Pass(), tree.body[0].body[0]))
    namespace = {}
    exec(compile(ast.fix_missing_locations(tree), __file__, "exec"), namespace)
    function = namespace["decorated_for_a_tool"]
    assert function.__code__.co_firstlineno != decorated_for_a_tool.__code__.co_firstlineno
    assert interpret(build(function, [FLOAT]), 2.0) == 8.0


def plain(function):
    return function


@plain
def decorated_for_a_tool(x):
    return x * 4


def test_a_definition_is_found_once():
    assert definition_of(maker) is definition_of(maker)


def test_numba_dispatchers_are_read_through_their_python_function():
    class Dispatcher:
        def __init__(self, function):
            self.py_func = function
            functools.update_wrapper(self, function)

        def __call__(self, x):
            raise AssertionError("compiled code is not run")

    assert interpret(build(Dispatcher(decorated), [FLOAT]), 2.0) == 14.0


def test_a_file_that_changed_is_noticed(tmp_path):
    path = tmp_path / "changing.py"
    path.write_text("def f(x):\n    return x\n")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text("\n\n\nx = 1\n")
    with pytest.raises(SourceError, match="does not define f"):
        build(namespace["f"], [FLOAT])


def test_captured_values_are_read_at_each_call():
    def scaled(x):
        return x * np.sum(weights)

    weights = np.array([1.0, 2.0])
    built = build(scaled, [FLOAT])
    (getter,) = built.captures.values()
    assert list(built.captures) == ["weights"]
    weights = np.array([5.0, 6.0])
    assert interpret(built, 2.0, getter()) == 22.0


def test_parameters_are_given_by_position_and_name():
    def f(x, *rest, scale=2.0):
        return (x + sum(rest)) * scale

    built = build(f, [FLOAT, FLOAT, FLOAT, FLOAT])
    assert [p.name for p in built.params] == ["x", "rest_0", "rest_1", "scale"]
    assert interpret(built, 1.0, 2.0, 3.0, 4.0) == 24.0


# --------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    "type",
    [
        Scalar("float64"),
        Scalar("int32"),
        Scalar("bool"),
        Array("float32", (Extent("n", 0, False), 3)),
        Array("float64", (Extent("x.0", -2, False),)),
        Unknown("x"),
        Tuple((Scalar("float64"), Array("int64", (4,)))),
        Tuple((Scalar("bool"),)),
        Tape(Array("float64", (Extent("n", 0, False),))),
    ],
    ids=str,
)
def test_types_are_read_back(type):
    assert parse_type(str(type)) == type


def test_a_tape_is_a_list_that_is_appended_to():
    built = build_from_text("""
def f(x: "float64", n: "int64"):
    x_tape = []
    for i in range(n):
        x_tape.append(x)
        x = x * 2.0
    s = 0.0
    for y in reversed(x_tape):
        s = s * 0.5 + y
    while len(x_tape) > 0:
        s = s + x_tape.pop()
    return s
""")
    assert interpret(built, 1.5, 3) == (6.0 * 0.5 + 3.0) * 0.5 + 1.5 + 6.0 + 3.0 + 1.5


def test_text_is_registered_for_tracebacks():
    function = load_text("def f(x):\n    return x + 1\n", filename="<s2s test>")
    assert linecache.getline(function.__code__.co_filename, 2) == "    return x + 1\n"
    assert interpret(build(function, [FLOAT]), 1.0) == 2.0


def test_text_that_is_not_python_is_refused():
    with pytest.raises(SourceError, match="not Python"):
        build_from_text("def f(:")
    with pytest.raises(SourceError, match="defines no function"):
        build_from_text("x = 1")


def test_a_rebound_function_is_looked_into_again(monkeypatch):
    import constructs

    def caller(x):
        return constructs.calls_with_defaults_and_keywords(x)

    before = interpret(build(caller, [FLOAT]), 2.0)
    monkeypatch.setattr(constructs, "both", lambda t, *, shift: (t, shift))
    assert interpret(build(caller, [FLOAT]), 2.0) == caller(2.0) != before


def test_a_prompt_that_keeps_texts_by_code_object(monkeypatch):
    text = "def f(x):\n    return x * 5\n"
    namespace = {}
    exec(compile(text, "<python-input-7>", "exec"), namespace)
    kept = {namespace["f"].__code__: text.splitlines(keepends=True)}
    monkeypatch.setattr(
        linecache, "_getlines_from_code", lambda code: kept.get(code, []), raising=False
    )
    assert interpret(build(namespace["f"], [FLOAT]), 2.0) == 10.0


def test_a_printed_helper_with_an_attribute_reads_back_as_its_op():
    """`sorting_order(keys, reverse)` in a dump is one op, whose second operand is known when it is
    read.
    """
    from s2s.pipeline import render

    def middle(a):
        return sum(sorted([v * 2 for v in a])[1:3])

    built = build(middle, [Array("float64", (Extent("n"),))])
    parsed = build_from_text(render(built, annotate=True).text, {"np": np}, "<dump>")
    a = np.array([3.0, 1.0, 2.0, 5.0])
    assert interpret(parsed, a) == interpret(built, a) == middle(a)
