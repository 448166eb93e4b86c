"""Cost model of loops: operation counts as polynomials in trip counts, from syntax trees.

    for i in range(n):
        t = np.exp(x[i])          Work({("n", "m"): 3, ("n",): 7})
        for j in range(m):
            s += t * y[j]
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Sequence

from ...ops.core.define_elementwise import IN_MATH
from ...ops.core.record import RECORDS, returns_its_operand
from ..syntax.ast_names import names_in, nodes_in, stored_in

MANY = 8  # assumed trips of a loop of which nothing is known
LANES = 4  # trips at a time, in vectorised loops of a strip
CALL = 200  # operations of a matrix product or the like
LIBRARIES = ("blas_", "lapack_")  # name prefixes of functions that call libraries
UNKNOWN = "unknown"
LONG = 200  # characters
# ops whose result is taken to be their first operand: an estimate, for what broadcasts and for what
# divides it into strips
ABOUT = frozenset({"broadcast_length", "strips_of"})

Work = Counter  # operation count by the factors of a product of trip counts, as text


@functools.cache
def costs() -> dict[str, int]:
    """The costs of ops that take longer than an addition, by the names that they are called by."""
    return {each.name.rpartition(".")[2]: record.cost for record in RECORDS.values()
            if record.cost > 1 for each in (record, IN_MATH.get(record, record))}


def is_length(name: str) -> bool:
    """Whether a call of `name` returns its first argument, or less."""
    return name in ABOUT or returns_its_operand(name)


def work_of(body: Sequence[ast.stmt], inside: set[str], index: str = "",
            trips: ast.expr | None = None) -> Work:
    """The cost of one run of `body`, in terms of values from outside the loop."""
    found, most = Work(), {}
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)],
                            ast.Call(ast.Name("min"), [_, ast.Constant(int(n))]) as value):
                # strips have this length except the last, and their loops are vectorised
                most[name] = -(-n // LANES)
                found += _operations(value)
            case ast.For(_, ast.Call() as iterator, inner):
                found += _operations(iterator)
                own = trips_of(iterator)[1]
                names, share = names_in(own), 1
                if index in names and trips is not None:  # a triangle: half of a rectangle
                    own, share = (
                        Substitute({index: trips}).visit(parsed(ast.unparse(own))[0].value), 2)
                known = not names_in(own) & inside
                for key, n in work_of(inner, inside, index, trips).items():
                    factor = (ast.unparse(own),) if known else ()
                    number = (own.value if isinstance(own, ast.Constant) else most.get(own.id)
                              if isinstance(own, ast.Name) else None)
                    if number is not None:
                        factor = ()
                    found[(*key, *factor)] += -(-n // share) * (
                        1 if factor else MANY if number is None else max(number, 0))
            case ast.For() | ast.While():
                for key, n in work_of(statement.body, inside, index, trips).items():
                    found[key] += n * MANY
            case ast.If(test, first, second):
                found += _operations(test)
                for arm in (first, second):
                    for key, n in work_of(arm, inside, index, trips).items():
                        found[key] += n if not second else -(-n // 2)
            case _:
                found += _operations(statement)
    return found


def _operations(tree: ast.AST) -> Work:
    count = 0
    for node in nodes_in(tree):
        match node:
            case ast.BinOp(_, ast.Pow()):
                count += 8
            case ast.BinOp(_, ast.Div() | ast.FloorDiv() | ast.Mod()):
                count += 4
            case ast.BinOp(_, ast.MatMult()) | ast.Call(ast.Attribute(ast.Attribute(_, "linalg"))):
                count += CALL
            case ast.Call(ast.Name(name)) if name.startswith(LIBRARIES):
                count += CALL
            case ast.Call(ast.Attribute(_, name) | ast.Name(name)):
                count += costs().get(name.removeprefix("vector_"), 1)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Subscript() | ast.AugAssign():
                count += 1
    return Work({(): count})


def spelled(work: Work) -> str:
    """A sum of products, as Python."""
    terms = sorted(((key, n) for key, n in work.items() if n), key=lambda item: len(item[0]))
    texts = [" * ".join([*([str(n)] if n != 1 or not key else []), *(as_factor(f) for f in key)])
             for key, n in terms]
    return " + ".join(texts) or "1"


def as_factor(text: str) -> str:
    tree = parsed(text)[0].value
    return text if isinstance(tree,
                              (ast.Name, ast.Constant, ast.Call, ast.Subscript)) else f"({text})"


def trips_of(iterator: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
    """The start and length of a `range`, and whether it counts down."""
    match iterator.args:
        case [stop]:
            return ast.Constant(0), stop, False
        case [start, stop]:
            return start, difference(stop, start), False
        case [start, stop, ast.UnaryOp(ast.USub(), ast.Constant(1)) | ast.Constant(-1)]:
            return start, difference(start, stop), True
        case [start, stop, _]:
            return start, difference(stop, start), False


def difference(a: ast.expr, b: ast.expr) -> ast.expr:
    """a - b; for n - 1 and -1, n."""
    match a, b:
        case ast.BinOp(n, ast.Sub(), ast.Constant(k)), (ast.UnaryOp(ast.USub(), ast.Constant(j))
                                                        | ast.Constant(j)) if k == abs(j) == 1:
            return n
        case ast.Constant(x), ast.Constant(y):
            return ast.Constant(x - y)
    return ast.BinOp(a, ast.Sub(), b)


class Substitute(ast.NodeTransformer):
    def __init__(self, known: dict[str, ast.expr]):
        self.known = known

    def visit_Name(self, node: ast.Name):
        return self.known.get(node.id, node)

    def visit_Call(self, node: ast.Call):
        if isinstance(node.func, ast.Name) and is_length(node.func.id):
            return self.visit(node.args[0])  # a check, or an upper bound
        return self.generic_visit(node)


class CallValues:
    """The values of a function known at a call, in terms of its arguments a0, a1, ..."""

    def __init__(self, tree: ast.FunctionDef):
        self.arguments = {f"a{k}" for k in range(len(tree.args.args))}
        self.known = known_of(tree)

    def of(self, work: Work, trips: str) -> Work:
        """The cost of all `trips` in terms of the arguments; an UNKNOWN factor counts as 1."""
        return Work({tuple(self.factor(f) for f in (*key, trips)): n for key, n in work.items()})

    def factor(self, factor: str) -> str:
        """A trip count in terms of the arguments."""
        tree = Substitute(self.known).visit(parsed(factor)[0].value)
        text = ast.unparse(tree)
        simple = all(isinstance(node, (ast.Name, ast.Constant, ast.BinOp, ast.operator,
                                       ast.expr_context, ast.Call, ast.Subscript, ast.Attribute,
                                       ast.UnaryOp, ast.USub)) for node in nodes_in(tree))
        simple = simple and all(isinstance(node.value, ast.Attribute)
                                for node in nodes_in(tree) if isinstance(node, ast.Subscript))
        if (not simple or len(text) > LONG
                or not names_in(tree) <= {*self.arguments, "max", "min", "len"}):
            return UNKNOWN
        return text


def known_of(tree: ast.FunctionDef) -> dict[str, ast.expr]:
    """The values of names assigned once at the top of the function, in terms of its parameters."""
    counts = Counter(stored_in(tree.body))
    known: dict[str, ast.expr] = {a.arg: ast.Name(f"a{k}", ast.Load())
                                  for k, a in enumerate(tree.args.args)}
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(name)], value) if counts[name] == 1 and name not in known:
                known[name] = Substitute(known).visit(parsed(ast.unparse(value))[0].value)
    return known


def parsed(text: str) -> list[ast.stmt]:
    return ast.parse(text).body
