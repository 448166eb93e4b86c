"""Functions and classes that were pickled by value: they arrive without the name of their file
(cloudpickle 3.1.3), or without their text.
"""

import dataclasses
import subprocess
import sys
import types
from collections import namedtuple

import pytest

import s2s
from s2s.errors import SourceError
from s2s.front.syntax.source_lines import carry, texts_elsewhere
from s2s.ir.code_objects import NAMELESS, is_of_dataclass, is_of_namedtuple

Point = namedtuple("Point", "x y")


def arrived(x, **globals):
    """A function or class as cloudpickle makes it anew: its code names no file."""
    if isinstance(x, types.CodeType):
        return x.replace(co_filename=NAMELESS, co_consts=tuple(map(arrived, x.co_consts)))
    if isinstance(x, types.FunctionType):
        return types.FunctionType(
            arrived(x.__code__),
            {**x.__globals__, **globals},
            x.__name__,
            x.__defaults__,
            x.__closure__,
        )
    if isinstance(x, type):
        for name, f in vars(x).items():
            if isinstance(f, types.FunctionType):
                f.__code__ = arrived(f.__code__)
    return x


def cube(x):
    return x**3


def closure(k):
    return lambda x: k * x * x  # 2 k x


@pytest.mark.parametrize(
    "f, wanted",
    [(cube, 12.0), (closure(3.0), 12.0), (lambda x: x * x + 1, 4.0)],
    ids=["def", "closure", "lambda"],
)
def test_the_file_of_its_module_is_looked_at(f, wanted):
    t = s2s.grad(arrived(f))
    assert t(2.0) == wanted
    assert "test_pickled.py" in t.source and NAMELESS not in t.source


def test_other_code_than_that_of_the_file_is_refused():
    changed = arrived(cube)
    changed.__code__ = changed.__code__.replace(
        co_consts=tuple(4 if k == 3 else k for k in cube.__code__.co_consts)
    )
    with pytest.raises(
        SourceError, match=r"source of cube cannot be found[^$]*pickle s2s.grad\(f\)"
    ):
        s2s.grad(changed)(2.0)
    with pytest.raises(SourceError, match="cannot be found"):
        s2s.grad(arrived(lambda x: x - 7, __file__="<gone>"))(2.0)


def test_of_texts_that_came_along_the_one_that_says_the_same():
    cells = {
        name: f"def f(x):\n    return {text}\n"
        for name, text in [("<cell 1>", "x * 2"), ("<cell 2>", "x * 3"), ("<cell 3>", "2 * x * x")]
    }
    functions = []
    for name, text in cells.items():
        space = {}
        exec(compile(text, name, "exec"), space)
        functions.append(arrived(space["f"]))
        carry(name, text)
    carry("<cell 1>", "def f(x):\n    return x * 5\n")  # run again
    for f, name, wanted in zip(functions, cells, (2.0, 3.0, 12.0)):
        t = s2s.grad(f)
        assert t(3.0) == wanted and name in t.source


def new_dataclass(**options):
    @dataclasses.dataclass(**options)
    class Made:
        a: float
        c: dataclasses.InitVar[float]
        l: list = dataclasses.field(default_factory=lambda: [1.0, 2.0])
        t: float = dataclasses.field(init=False)
        k: float = dataclasses.field(default=1.0, kw_only=True)

        def __post_init__(self, c):
            object.__setattr__(self, "t", self.a * c)

    return Made


@pytest.mark.parametrize(
    "options", [{}, {"frozen": True}, {"order": True}, {"kw_only": True}], ids=str
)
def test_what_a_dataclass_writes_is_told_from_what_its_user_writes(options):
    cls = arrived(new_dataclass(**options))
    assert (
        is_of_dataclass(cls, "__init__")
        and is_of_dataclass(cls, "__eq__")
        and not is_of_dataclass(cls, "__post_init__")
    )

    @dataclasses.dataclass
    class Own:
        a: float

        def __init__(self, x):
            self.a = 3 * x

        def __eq__(self, other):
            return False

    own = arrived(Own)
    assert not is_of_dataclass(own, "__init__") and not is_of_dataclass(own, "__eq__")
    assert s2s.grad(lambda x: own(x).a * (1.0 if own(x) == own(x) else 2.0))(1.0) == 6.0


def test_a_dataclass_and_a_named_tuple_that_arrived():
    @dataclasses.dataclass
    class Made:
        a: float
        l: list = dataclasses.field(default_factory=lambda: [1.0, 2.0])
        k: float = 3.0

    class Own(Point):
        def __new__(cls, x):
            return super().__new__(cls, 2 * x, x)

    Made, own = arrived(Made), arrived(Own)
    assert s2s.grad(lambda x: Made(x).a * Made(x, k=x).k * Made(x).l[1])(3.0) == 12.0
    assert s2s.grad(lambda p: p.a * p.k)(Made(2.0)).k == 2.0
    assert is_of_namedtuple(Point.__new__) and not is_of_namedtuple(own.__new__)
    with pytest.raises(s2s.UnsupportedError, match="Own defines __new__"):
        s2s.grad(lambda x: own(x).x)(1.0)


SCRIPT = '''
import dataclasses, subprocess, sys
import cloudpickle, numpy as np, s2s

@dataclasses.dataclass
class Params:
    w: np.ndarray
    b: float = 1.0
    l: list = dataclasses.field(default_factory=lambda: [1.0])

class Spring:
    def __init__(self, k):
        self.k = k
    def energy(self, x):
        return self.k * x**3

K = 3.0
def helper(x): return K * x**2
def plain(x): return helper(x) * x
def params(p): return np.sum(p.w**2) * p.b
slope = s2s.grad(plain)
def closure(k): return lambda x: k * x * x
FUNCTIONS = {
    "transformed": (s2s.grad(plain), 36.0),
    "calls a transformed": (lambda x: slope(x), 36.0),
    "transforms": (lambda x: s2s.grad(plain)(x), 36.0),
    "dataclass": (s2s.grad(lambda x: Params(x, x).b * Params(x).l[0] * x), 4.0),
    "dataclass as argument": (lambda x: s2s.grad(params)(Params(np.array([x, 1.0]))).w[0], 4.0),
    "class": (s2s.grad(lambda x: Spring(2.0).energy(x)), 24.0),
    "method": (s2s.grad(Spring(2.0).energy), 24.0),
    "closure": (s2s.grad(closure(3.0)), 12.0),
}
programs = "\\n".join(f"print(pickle.loads({cloudpickle.dumps(f)!r})(2.0))"
                       for f, _ in FUNCTIONS.values())
done = subprocess.run([sys.executable, "-c", "import pickle\\n" + programs],
                      capture_output=True, text=True)
print(done.stderr, file=sys.stderr)
for (name, (_, wanted)), line in zip(FUNCTIONS.items(), done.stdout.split()):
    print(name, "right" if float(line) == wanted else "wrong")
'''


@pytest.mark.slow
def test_a_script(tmp_path):
    pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert [line.endswith("right") for line in done.stdout.splitlines()] == [True] * 8, (
        done.stdout + done.stderr
    )


def test_texts_arrive_while_others_are_looked_at():
    carry("<first>", "a = 1\n")
    looked_at = texts_elsewhere({})
    assert next(looked_at) == ("<first>", "a = 1\n")
    carry("<second>", "a = 2\n")
    assert ("<second>", "a = 2\n") not in [*looked_at] and next(texts_elsewhere({}))[
        0
    ] == "<second>"
