"""Programs written another way, which compute the same: values and derivatives must not change.

`rewritten(text, function, kind, seed)` is the text of a module in which one function is written
another way, None where there is nothing to rewrite.  `compare` asks whether s2s makes the same of
both.  A rewrite need not be right for every program: one that Python itself gives another value for
is not counted.

    rename       variables and functions get other names: generated-looking ones, native code's,
    NumPy's, soft keywords crosswise    an expression becomes a function whose parameters have the
    caller's names, each that of another one function     an expression becomes a function of what
    it reads closure      an expression becomes a nested function that reads it from around method
    an expression becomes a method of an object lambda       an expression becomes a lambda
    statements   neighbouring assignments become a function that returns what they assign, each
    array twice swapped      both sides of an operator come from one function, called twice with its
    arguments swapped while        `for i in range(...)` becomes a `while` offset       `for i in
    range(n)` counts from 3, or down loop         a list comprehension becomes a loop
"""

from __future__ import annotations

import ast
import builtins
import copy
import keyword
import linecache
import random
import sys
import types
import warnings
from collections.abc import Callable, Sequence

import numpy as np

import s2s
from s2s.errors import UnsupportedError
from s2s.front.domain.heap import SharedError

NAMES = """t t_1 t_2 x_bar y_bar x_tape a_tape x_dot n_1 n d1 s1 done tape items shape size
    value lanes lane saved0 any1 f_grad f_fwd f_bwd f_vjp checked_place natural_number
    blas_product unshared_empty unshared_zeros native_copy vector_exp vector_sin in_parts
    natural apart parts array zeros empty exp sin sqrt asarray dtype linalg match case type _ __
    sum round print input id zip αβ naïve ﬁeld self cls out a0""".split()
UNMOVED = (
    ast.Lambda,
    ast.NamedExpr,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.ListComp,
    ast.GeneratorExp,
    ast.SetComp,
    ast.DictComp,
    ast.Starred,
)
NESTED = (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Try, ast.With)


def names_in(*trees: ast.AST) -> list[str]:
    """The names that the trees read or bind, in order."""
    return list(
        dict.fromkeys(
            node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)
        )
    )


def locals_of(tree: ast.FunctionDef) -> set[str]:
    """Parameters and what is assigned."""
    a = tree.args
    params = {
        x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None
    }
    return params | {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def is_nesting(tree: ast.FunctionDef) -> bool:
    """Whether it has functions inside, or what else has variables of its own."""
    return any(isinstance(node, NESTED) for node in ast.walk(tree) if node is not tree)


class Rewriter:
    """One rewrite of the function `tree` of a module."""

    def __init__(self, module: ast.Module, name: str, rng: random.Random):
        self.module, self.rng = module, rng
        self.tree = next(
            node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name
        )
        self.taken = {
            *names_in(module),
            *dir(builtins),
            *(a.arg for a in ast.walk(module) if isinstance(a, ast.arg)),
            *(
                node.name
                for node in ast.walk(module)
                if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            ),
        }

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    # names

    def rename(self) -> bool:
        """Other names for the variables, and for the functions of the module that it calls."""
        if is_nesting(self.tree):
            return False
        said = set(names_in(self.module))
        names = [name for name in NAMES if name not in said and not keyword.iskeyword(name)]
        self.rng.shuffle(names)
        own = sorted(locals_of(self.tree) - {"np"})
        others = [
            node
            for node in self.module.body
            if isinstance(node, ast.FunctionDef) and node is not self.tree and not is_nesting(node)
        ]
        inside = dict(zip(own, names))
        outside = dict(
            zip([node.name for node in others if node.name not in own], names[len(own) :])
        )
        for node in others:
            _renamed(
                node,
                dict(
                    zip(
                        sorted(locals_of(node) - {"np"}),
                        self.rng.sample(names[: len(own) + 8], len(own) + 8),
                    )
                ),
            )
        _renamed(self.tree, inside)
        for node in ast.walk(self.module):
            if isinstance(node, ast.Name) and node.id in outside:
                node.id = outside[node.id]
            elif isinstance(node, ast.FunctionDef) and node.name in outside:
                node.name = outside[node.name]
        return bool(inside)

    # expressions

    def expressions(self) -> list[tuple[ast.AST, str, int | None, ast.expr]]:
        """The expressions that may be moved: whose they are, in which field, and at which place of
        it.
        """
        found = []
        if is_nesting(self.tree):
            return found
        for node in ast.walk(self.tree):
            if isinstance(node, UNMOVED) or isinstance(node, ast.comprehension):
                continue
            for field, content in ast.iter_fields(node):
                for k, x in enumerate(content) if isinstance(content, list) else [(None, content)]:
                    if (
                        isinstance(x, (ast.BinOp, ast.Call, ast.Subscript))
                        and not isinstance(getattr(x, "ctx", None), (ast.Store, ast.Del))
                        and not any(
                            isinstance(inner, (*UNMOVED, ast.Slice)) for inner in ast.walk(x)
                        )
                        and not self._bound_in_comprehension(x)
                    ):
                        found.append((node, field, k, x))
        return found

    def _bound_in_comprehension(self, x: ast.expr) -> bool:
        return any(
            isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp))
            and x in ast.walk(node)
            for node in ast.walk(self.tree)
        )

    def outline(self, kind: str) -> bool:
        found = self.expressions()
        if not found:
            return False
        owner, field, k, x = self.rng.choice(found)
        own = locals_of(self.tree)
        read = [name for name in names_in(x) if name in own]
        called = self._defined(kind, read, x)
        if called is None:
            return False
        if k is None:
            setattr(owner, field, called)
        else:
            getattr(owner, field)[k] = called
        return True

    def _defined(self, kind: str, read: list[str], x: ast.expr) -> ast.expr | None:
        """The call that stands for `x`, after what it calls has been defined."""
        name = self.fresh("outlined")
        arguments, text = ", ".join(read), ast.unparse(x)
        match kind:
            case "lambda":
                return _expression(f"(lambda {arguments}: {text})({arguments})")
            case "closure":
                if any(isinstance(node, ast.Return) for node in self.tree.body[:1]):
                    return None
                self.tree.body.insert(
                    _after_docstring(self.tree), _statement(f"def {name}():\n    return {text}")
                )
                return _expression(f"{name}()")
            case "method":
                made = (f"class {name}:\n    def part({', '.join([self.fresh('self'), *read])}):\n"
                        f"        return {text}")
                self.module.body.insert(self.module.body.index(self.tree), _statement(made))
                return _expression(f"{name}().part({arguments})")
            case "crosswise":
                turned = dict(zip(read, [*read[1:], *read[:1]]))
                moved = copy.deepcopy(x)
                for node in ast.walk(moved):
                    if isinstance(node, ast.Name):
                        node.id = turned.get(node.id, node.id)
                inner = f"def {name}_of({arguments}):\n    return {text}"
                outer = (f"def {name}({', '.join(turned.values())}):\n"
                         f"    return {name}_of({', '.join(turned[p] for p in read)})")
                self._insert(inner, outer)
            case _:
                self._insert(f"def {name}({arguments}):\n    return {text}")
        return _expression(f"{name}({arguments})")

    def _insert(self, *texts: str) -> None:
        place = self.module.body.index(self.tree)
        self.module.body[place:place] = map(_statement, texts)

    def swapped(self) -> bool:
        found = [
            (owner, field, k, x)
            for owner, field, k, x in self.expressions()
            if isinstance(x, ast.BinOp)
        ]
        if not found:
            return False
        *_, x = self.rng.choice(found)
        name = self.fresh("first")
        self._insert(f"def {name}(p, q):\n    return p")
        left, right = ast.unparse(x.left), ast.unparse(x.right)
        x.left, x.right = (
            _expression(f"{name}({left}, {right})"),
            _expression(f"{name}({right}, {left})"),
        )
        return True

    # statements

    def statements(self) -> bool:
        if is_nesting(self.tree):
            return False
        found = []
        for body in self._bodies():
            for k in range(len(body)):
                for stop in range(k + 1, min(k + 4, len(body) + 1)):
                    if all(
                        isinstance(s, ast.Assign)
                        and all(isinstance(t, (ast.Name, ast.Subscript)) for t in s.targets)
                        and not any(isinstance(inner, UNMOVED) for inner in ast.walk(s))
                        for s in body[k:stop]
                    ):
                        found.append((body, k, stop))
        if not found:
            return False
        body, k, stop = self.rng.choice(found)
        moved = body[k:stop]
        own, name = locals_of(self.tree), self.fresh("outlined")
        made = [t.id for s in moved for t in s.targets if isinstance(t, ast.Name)]
        made = list(dict.fromkeys(made))
        read, bound = [], set()
        for s in moved:
            read += [
                n
                for n in names_in(s.value, *(t for t in s.targets if isinstance(t, ast.Subscript)))
                if n in own and n not in bound and n not in read
            ]
            bound |= {t.id for t in s.targets if isinstance(t, ast.Name)}
        twice = [*made, *made]
        back = f"return {', '.join(twice)}" if made else "return None"
        inside = "\n".join(f"    {line}" for s in moved for line in ast.unparse(s).split("\n"))
        self._insert(f"def {name}({', '.join(read)}):\n{inside}\n    {back}")
        call = f"{name}({', '.join(read)})"
        body[k:stop] = [_statement(f"{', '.join(twice)} = {call}" if made else call)]
        return True

    def _bodies(self) -> list[list[ast.stmt]]:
        return [
            content
            for node in ast.walk(self.tree)
            for field, content in ast.iter_fields(node)
            if field in ("body", "orelse")
            and isinstance(content, list)
            and content
            and isinstance(content[0], ast.stmt)
        ]

    def _loops(self) -> list[tuple[list, ast.For, list[str]]]:
        """The loops over a range with a step of 1: where they stand, and first and last of the
        range.
        """
        found = []
        for body in self._bodies():
            for loop in body:
                match loop:
                    case ast.For(ast.Name(), ast.Call(ast.Name("range"), [stop], [])):
                        found.append((body, loop, ["0", ast.unparse(stop)]))
                    case ast.For(ast.Name(), ast.Call(ast.Name("range"), [start, stop], [])):
                        found.append((body, loop, [ast.unparse(start), ast.unparse(stop)]))
        return found

    def to_while(self) -> bool:
        if not (found := self._loops()):
            return False
        body, loop, (start, stop) = self.rng.choice(found)
        k, end = self.fresh("k"), self.fresh("end")
        head = [_statement(f"{loop.target.id} = {k}"), _statement(f"{k} += 1")]
        place = body.index(loop)
        body[place : place + 1] = [
            _statement(f"{k} = {start}"),
            _statement(f"{end} = {stop}"),
            ast.While(_expression(f"{k} < {end}"), [*head, *loop.body], loop.orelse),
        ]
        return True

    def offset(self) -> bool:
        if not (found := self._loops()):
            return False
        body, loop, (start, stop) = self.rng.choice(found)
        k, i, end = self.fresh("k"), loop.target.id, self.fresh("end")
        place = body.index(loop)
        if self.rng.random() < 0.5:
            loop.iter, first = _expression(f"range(({start}) + 3, ({stop}) + 3)"), f"{i} = {k} - 3"
        else:
            low = self.fresh("low")
            body[place:place] = [_statement(f"{low} = {start}"), _statement(f"{end} = {stop}")]
            loop.iter, first = (
                _expression(f"range({end} - 1, {low} - 1, -1)"),
                f"{i} = {low} + {end} - 1 - {k}",
            )
        loop.target = ast.Name(k, ast.Store())
        loop.body.insert(0, _statement(first))
        return True

    def to_loop(self) -> bool:
        found = [
            (body, s)
            for body in self._bodies()
            for s in body
            if isinstance(s, ast.Assign)
            and isinstance(s.value, ast.ListComp)
            and len(s.value.generators) == 1
            and isinstance(s.value.generators[0].target, ast.Name)
        ]
        if not found:
            return False
        body, s = self.rng.choice(found)
        each = s.value.generators[0]
        xs, v = self.fresh("xs"), self.fresh("v")
        for node in (node for tree in (s.value.elt, *each.ifs) for node in ast.walk(tree)):
            if isinstance(node, ast.Name) and node.id == each.target.id:
                node.id = v
        inner: ast.stmt = _statement(f"{xs}.append({ast.unparse(s.value.elt)})")
        for test in reversed(each.ifs):
            inner = ast.If(test, [inner], [])
        place = body.index(s)
        s.value = ast.Name(xs, ast.Load())
        body[place:place] = [
            _statement(f"{xs} = []"),
            ast.For(ast.Name(v, ast.Store()), each.iter, [inner], []),
        ]
        return True


KINDS: dict[str, Callable[[Rewriter], bool]] = {
    "rename": Rewriter.rename,
    **{
        kind: (lambda r, kind=kind: r.outline(kind))
        for kind in ("crosswise", "function", "closure", "method", "lambda")
    },
    "statements": Rewriter.statements,
    "swapped": Rewriter.swapped,
    "while": Rewriter.to_while,
    "offset": Rewriter.offset,
    "loop": Rewriter.to_loop,
}


def _renamed(tree: ast.FunctionDef, names: dict[str, str]) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _after_docstring(tree: ast.FunctionDef) -> int:
    return int(ast.get_docstring(tree) is not None)


def rewritten(text: str, function: str, kind: str, seed: int = 0) -> str | None:
    """The module `text` with its function written another way, or None where it has nothing of the
    kind.
    """
    module = ast.parse(text)
    if not KINDS[kind](Rewriter(module, function, random.Random(seed))):
        return None
    return ast.unparse(ast.fix_missing_locations(module)) + "\n"


def loaded(text: str, name: str, function: str, around: dict | None = None) -> Callable:
    """The function of a module of this text, whose source can be found; `around` are names that it
    also sees.
    """
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__.update(around or {}, __name__=name)
    exec(compile(text, filename, "exec"), module.__dict__)
    return module.__dict__[function]


class Changed(AssertionError):
    """What s2s makes of a program and of the same program written another way differs."""


def compare(
    f: Callable,
    g: Callable,
    args: Sequence,
    wrt: tuple[int, ...],
    exact: bool,
    second: bool = False,
    compiled: bool = False,
) -> bool:
    """Whether `f` and `g`, which are the same to Python, were compared; raises Changed where s2s
    makes another thing of them.

    False where Python gives another value, or where s2s refuses `f`.  `exact` is to the last bit.
    """
    def given() -> list:
        return copy.deepcopy(list(args))

    def ways(f: Callable):
        yield "value", lambda: s2s.value_and_grad(f, argnums=wrt)(*given())[0]
        yield "reverse", lambda: s2s.grad(f, argnums=wrt)(*given())
        yield "forward", lambda: s2s.jvp(f, tuple(given()), tuple(map(_tangent, given())))[1]
        if second:
            yield (
                "second order",
                lambda: s2s.jvp(
                    s2s.grad(f, argnums=wrt), tuple(given()), tuple(map(_tangent, given()))
                )[1],
            )
        if compiled:
            yield (
                "compiled",
                lambda: s2s.jit(s2s.value_and_grad(f, argnums=wrt), cache=False)(*given()),
            )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if not _same(f(*given()), g(*given()), True):
                return False
        except Exception:
            return False
        for (way, of_f), (_, of_g) in zip(ways(f), ways(g)):
            try:
                expected = of_f()
            except Exception:
                return False  # that is for other tests
            try:
                found = of_g()
            except SharedError:
                return False
            except UnsupportedError as error:
                raise Changed(f"{way}: refused, {error}") from error
            except Exception as error:
                raise Changed(f"{way}: {type(error).__name__}: {error}") from error
            if not _same(found, expected, exact and way != "compiled" or way == "value"):
                raise Changed(f"{way}: {found!r}, and before {expected!r}")
    return True


def _tangent(x):
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return np.cos(np.arange(x.size) + 0.5).reshape(x.shape)
    return 0.7 if isinstance(x, float) else np.zeros(x.shape) if isinstance(x, np.ndarray) else 0.0


def _same(found, expected, exact: bool) -> bool:
    a, b = s2s.tree.leaves(found), s2s.tree.leaves(expected)
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape:
            return False
        if x.dtype.kind not in "fciub":
            continue
        scale = (
            max(1.0, float(np.max(np.abs(y), initial=0.0)))
            if y.dtype.kind in "fc" and np.all(np.isfinite(y))
            else 1.0
        )
        if not (
            np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
            if exact
            else np.allclose(x, y, rtol=1e-8, atol=1e-9 * scale, equal_nan=True)
        ):
            return False
    return True
