"""Print syntax trees with the parentheses, comments and line breaks that a person would write.

`astunparse` puts parentheses around every operation. Here an expression is dispatched with the
precedence of its context, and gets parentheses only if its own is lower.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator

import astunparse

from ...errors import Line
from .literals import literal

WIDTH = 100  # columns

(
    LOWEST,
    TERNARY,
    OR,
    AND,
    NOT,
    COMPARE,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    SHIFT,
    SUM,
    TERM,
    SIGN,
    POWER,
    ATOM,
) = range(15)

_BINARY = {
    ast.Add: ("+", SUM),
    ast.Sub: ("-", SUM),
    ast.Mult: ("*", TERM),
    ast.Div: ("/", TERM),
    ast.FloorDiv: ("//", TERM),
    ast.Mod: ("%", TERM),
    ast.MatMult: ("@", TERM),
    ast.Pow: ("**", POWER),
    ast.LShift: ("<<", SHIFT),
    ast.RShift: (">>", SHIFT),
    ast.BitOr: ("|", BIT_OR),
    ast.BitXor: ("^", BIT_XOR),
    ast.BitAnd: ("&", BIT_AND),
}


def _inside_quotes(tree: ast.JoinedStr, quote: str) -> str:
    """The text between the quotes of an f-string; without a `quote`, only its literal parts."""
    found = []
    for part in tree.values:
        match part:
            case ast.Constant(text) if quote:
                text = (repr(text + "\"")[1:-2].replace("\\'", "'")
                        .replace(quote[0], f"\\{quote[0]}"))
                found.append(text.replace("{", "{{").replace("}", "}}"))
            case ast.FormattedValue(value, conversion, spec):
                text = expression_text(value)
                text = f" {text}" if text.startswith("{") else text
                text += "" if conversion == -1 else f"!{chr(conversion)}"
                found.append(
                    f"{{{text}{'' if spec is None else ':' + _inside_quotes(spec, quote)}}}")
    return "".join(found)


class Comment(ast.stmt):
    """A comment on a line of its own."""

    _fields = ()

    def __init__(self, text: str):
        super().__init__()
        self.text = text


class Unparser(astunparse.Unparser):
    """Writes a tree into `text`, and records in `lines` the user's line of each line."""

    def __init__(self):
        self.out: list[str] = [""]
        self.lines: dict[int, Line] = {}
        self.raises: dict[int, object] = {}  # in compiled code: the op that raises on a line
        self.future_imports = []
        self._indent = 0
        self._asked = LOWEST

    @property
    def text(self) -> str:
        return "\n".join(self.out)

    def write(self, text: str) -> None:
        self.out[-1] += str(text)

    def fill(self, text: str = "") -> None:
        self.out.append("    " * self._indent + text)

    def dispatch(self, tree, asked: int = LOWEST) -> None:
        """Write `tree`, in parentheses if its precedence is lower than `asked`."""
        if isinstance(tree, list):
            for statement in tree:
                self.statement(statement)
        elif isinstance(tree, ast.expr):
            saved, self._asked = self._asked, asked
            super().dispatch(tree)
            self._asked = saved
        else:
            super().dispatch(tree)

    def statement(self, tree: ast.stmt) -> None:
        """Write one statement and break the lines that are too long."""
        first = len(self.out)
        super().dispatch(tree)
        if not getattr(tree, "body", None) and any(len(line) > WIDTH for line in self.out[first:]):
            self.out[first:] = break_line("".join(self.out[first:]), WIDTH)
        if hasattr(tree, "raises"):
            self.raises.update(dict.fromkeys(range(first, len(self.out)), tree.raises))
        line = getattr(tree, "line", None)
        if line is not None:
            last = first + 1 if getattr(tree, "body", None) else len(self.out)
            for number in range(first, last):
                self.lines.setdefault(number, line)

    def bracket(self, precedence: int, write: Callable[[], None]) -> None:
        """Run `write`, between parentheses if the context binds tighter than `precedence`."""
        if self._asked > precedence:
            self.write("(")
            write()
            self.write(")")
        else:
            write()

    def separated(self, items: list) -> None:
        """Write the items with commas between them."""
        for k, item in enumerate(items):
            if k:
                self.write(", ")
            self.dispatch(item, TERNARY)

    # ------------------------------------------------------------------------------- statements

    def _Comment(self, tree: Comment) -> None:
        room = WIDTH - 4 * self._indent - 2
        self.fill(
            f"# {tree.text if len(tree.text) <= room else tree.text[: room - 4].rstrip() + ' ...'}"
        )

    def _FunctionDef(self, tree: ast.FunctionDef) -> None:
        for decorator in tree.decorator_list:
            self.fill("@")
            self.dispatch(decorator)
        self.fill(f"def {tree.name}(")
        self.dispatch(tree.args)
        self.write(")")
        if len(self.out[-1]) >= WIDTH:
            self.out[-1:] = break_line(self.out[-1], WIDTH - 1)
        self.enter()
        self.dispatch(tree.body)
        self.leave()

    def _Assign(self, tree: ast.Assign) -> None:
        self.fill()
        for target in tree.targets:
            self.dispatch(target)
            self.write(" = ")
        self.dispatch(tree.value)

    def _Expr(self, tree: ast.Expr) -> None:
        match tree.value:
            case ast.Constant(str() as text) if getattr(tree, "docstring", False):
                lines = docstring_lines(text, WIDTH - 4 * self._indent - 6)
                self.fill('"""' + lines[0])
                for line in lines[1:]:
                    self.fill(line)
                self.write('"""') if len(lines) == 1 else self.fill('"""')
            case value:
                self.fill()
                self.dispatch(value)

    # ------------------------------------------------------------------------------ expressions

    def _Assert(self, tree: ast.Assert) -> None:
        self.fill("assert ")
        self.separated([tree.test, *([tree.msg] if tree.msg is not None else [])])

    def _JoinedStr(self, tree: ast.JoinedStr) -> None:
        shown = _inside_quotes(tree, "")
        # quotes that Python 3.11 accepts
        quote = next((q for q in ('"', "'", '"""') if q not in shown), "'''")
        self.write(f"f{quote}{_inside_quotes(tree, quote)}{quote}")

    def _Constant(self, tree: ast.Constant) -> None:
        text = literal(tree.value)
        self.bracket(SIGN if text.startswith("-") else ATOM, lambda: self.write(text))

    def _Name(self, tree: ast.Name) -> None:
        self.write(tree.id)

    def _Tuple(self, tree: ast.Tuple) -> None:
        def members() -> None:
            self.separated(tree.elts)
            if len(tree.elts) == 1:
                self.write(",")

        if len(tree.elts) > 1:
            self.bracket(LOWEST, members)
        else:
            self.write("(")
            members()
            self.write(")")

    def _ListComp(self, tree: ast.ListComp) -> None:
        self.write("[")
        self.dispatch(tree.elt, TERNARY)
        for loop in tree.generators:
            self.write(" for ")
            self.dispatch(loop.target, LOWEST)
            self.write(" in ")
            self.dispatch(loop.iter, OR)
        self.write("]")

    def _List(self, tree: ast.List) -> None:
        self.write("[")
        self.separated(tree.elts)
        self.write("]")

    def _Set(self, tree: ast.Set) -> None:
        self.write("{")
        self.separated(tree.elts)
        self.write("}")

    def _Dict(self, tree: ast.Dict) -> None:
        self.write("{")
        for k, (key, x) in enumerate(zip(tree.keys, tree.values)):
            self.write(", " if k else "")
            self.dispatch(key, TERNARY)
            self.write(": ")
            self.dispatch(x, TERNARY)
        self.write("}")

    def _UnaryOp(self, tree: ast.UnaryOp) -> None:
        if isinstance(tree.op, ast.Not):
            self.bracket(NOT, lambda: (self.write("not "), self.dispatch(tree.operand, NOT)))
            return
        # -(a * b) is -a * b to the last bit: what a person would write
        product = isinstance(tree.op, ast.USub) and _starts_positive_product(tree.operand)
        precedence = TERM if product else SIGN
        self.bracket(
            precedence,
            lambda: (
                self.write(self.unop[type(tree.op).__name__]),
                self.dispatch(tree.operand, precedence),
            ),
        )

    def _BinOp(self, tree: ast.BinOp) -> None:
        sign, precedence = _BINARY[type(tree.op)]
        left, right = (ATOM, SIGN) if precedence == POWER else (precedence, precedence + 1)
        tight = precedence == POWER and _is_short(tree.left) and _is_short(tree.right)

        def sides() -> None:
            self.dispatch(tree.left, left)
            self.write(sign if tight else f" {sign} ")
            self.dispatch(tree.right, right)

        self.bracket(precedence, sides)

    def _Compare(self, tree: ast.Compare) -> None:
        def chain() -> None:
            self.dispatch(tree.left, COMPARE + 1)
            for op, right in zip(tree.ops, tree.comparators):
                self.write(f" {self.cmpops[type(op).__name__]} ")
                self.dispatch(right, COMPARE + 1)

        self.bracket(COMPARE, chain)

    def _BoolOp(self, tree: ast.BoolOp) -> None:
        precedence = AND if isinstance(tree.op, ast.And) else OR

        def chain() -> None:
            for k, operand in enumerate(tree.values):
                if k:
                    self.write(" and " if precedence == AND else " or ")
                self.dispatch(operand, precedence + 1)

        self.bracket(precedence, chain)

    def _IfExp(self, tree: ast.IfExp) -> None:
        def choice() -> None:
            self.dispatch(tree.body, TERNARY + 1)
            self.write(" if ")
            self.dispatch(tree.test, TERNARY + 1)
            self.write(" else ")
            self.dispatch(tree.orelse, TERNARY)

        self.bracket(TERNARY, choice)

    def _Lambda(self, tree: ast.Lambda) -> None:
        def function() -> None:
            self.write("lambda ")
            self.dispatch(tree.args)
            self.write(": ")
            self.dispatch(tree.body, TERNARY)

        self.bracket(TERNARY, function)

    def _Attribute(self, tree: ast.Attribute) -> None:
        self.dispatch(tree.value, ATOM)
        if isinstance(tree.value, ast.Constant) and isinstance(tree.value.value, int):
            self.write(" ")
        self.write(f".{tree.attr}")

    def _Call(self, tree: ast.Call) -> None:
        self.dispatch(tree.func, ATOM)
        self.write("(")
        self.separated(tree.args)
        for k, keyword in enumerate(tree.keywords):
            self.write(", " if k or tree.args else "")
            self.write(f"{keyword.arg}=" if keyword.arg else "**")
            self.dispatch(keyword.value, TERNARY)
        self.write(")")

    def _Subscript(self, tree: ast.Subscript) -> None:
        self.dispatch(tree.value, ATOM)
        self.write("[")
        if isinstance(tree.slice, ast.Tuple) and tree.slice.elts:
            self.separated(tree.slice.elts)
            if len(tree.slice.elts) == 1:
                self.write(",")
        else:
            self.dispatch(tree.slice)
        self.write("]")

    def _Slice(self, tree: ast.Slice) -> None:
        if tree.lower is not None:
            self.dispatch(tree.lower, TERNARY)
        self.write(":")
        if tree.upper is not None:
            self.dispatch(tree.upper, TERNARY)
        if tree.step is not None:
            self.write(":")
            self.dispatch(tree.step, TERNARY)

    def _Starred(self, tree: ast.Starred) -> None:
        self.write("*")
        self.dispatch(tree.value, BIT_OR)


def _starts_positive_product(tree: ast.expr) -> bool:
    """Whether `-` in front of this product needs no parentheses."""
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Mult, ast.Div)):
        tree = tree.left
        if (
            isinstance(tree, ast.UnaryOp)
            or isinstance(tree, ast.Constant)
            and literal(tree.value)[0] == "-"
        ):
            return False
        if not isinstance(tree, ast.BinOp):
            return True
        if isinstance(tree.op, (ast.Add, ast.Sub, ast.Pow)):
            return True
    return False


def _is_short(tree: ast.expr) -> bool:
    """Whether a power of this is written without spaces: x**2."""
    match tree:
        case ast.Name():
            return True
        case ast.Constant(value):
            return isinstance(value, (int, float))
        case ast.UnaryOp(ast.USub(), operand):
            return _is_short(operand)
    return False


def expression_text(tree: ast.expr) -> str:
    """One expression as text, on one line."""
    unparser = Unparser()
    unparser.dispatch(tree, LOWEST)
    return unparser.out[-1]


# ------------------------------------------------------------------------------------ line breaking


def docstring_lines(text: str, width: int) -> list[str]:
    """Break a docstring into lines, but not within a type or between it and its name."""
    text = re.sub(r"\[[^][]*\]", lambda found: found[0].replace(" ", "\xa0"), text)
    text = re.sub(r"(?<=\w):\s(?=\S)", ":\xa0", text)
    return [line.replace("\xa0", " ")
            for line in textwrap.wrap(text, width, break_long_words=False)]


def break_line(line: str, width: int) -> list[str]:
    """Break a logical line into several: inside brackets, after a comma or before an operator."""
    indent = len(line) - len(line.lstrip())
    line = _in_parentheses(line, indent)
    fitting = [place for place in _break_places(line, indent) if place[0] <= width]
    if not fitting:
        return [line]
    depth = min(place[1] for place in fitting)
    column, _, hang = [place for place in fitting if place[1] == depth][-1]
    head, rest = line[:column].rstrip(), " " * hang + line[column:].lstrip()
    if len(rest) >= len(line):
        return [line]
    if len(rest) <= width:
        return [head, rest]
    # the rest is inside the same brackets: break it as a line that has them open
    opened = "(" * depth
    tail = (
        break_line(" " * (hang - depth) + opened + rest[hang:], width) if hang >= depth else [rest]
    )
    return [head, tail[0].replace(opened, " " * depth, 1), *tail[1:]]


def _in_parentheses(line: str, indent: int) -> str:
    """`a = b + c` as `a = (b + c)`, `return b, c` as `return (b, c)`, so that it can be broken."""
    start = next(
        (k for k, depth in _depths(line, indent) if not depth and line[k - 2 : k] == "= "), None
    )
    start = indent + 7 if line.startswith("return ", indent) else start
    if start is None or not any(
        depth == 0 and _may_break(line, k) for k, depth in _depths(line, start)
    ):
        return line
    return f"{line[:start]}({line[start:]})"


def _break_places(line: str, indent: int) -> list[tuple[int, int, int]]:
    """The possible breaks: (column, depth of brackets, column where the next line starts)."""
    places, opened, last = [], [], 0
    for k, depth in _depths(line, indent):
        if depth > last:
            opened.append(k)
        elif depth < last:
            opened.pop()
        last = depth
        if opened and _may_break(line, k) and k > opened[-1]:
            places.append((k, depth, opened[-1]))
    return places


def _depths(line: str, start: int) -> Iterator[tuple[int, int]]:
    """Each column from `start` outside of strings, with the number of brackets open before it."""
    depth, quote, escaped = 0, "", False
    for k in range(start, len(line)):
        c = line[k]
        if quote:
            quote = "" if c == quote and not escaped else quote
            escaped = c == "\\" and not escaped
            continue
        yield k, depth
        quote = c if c in "'\"" else ""
        depth += (c in "([{") - (c in ")]}")


def _may_break(line: str, k: int) -> bool:
    """Whether a line may end before column k: after a comma or before an operator.

    A comma in `for a, b in` does not count.
    """
    after_comma = line[k - 2] == "," and not re.search(r"\bfor (?:(?! in ).)*$", line[:k])
    return line[k - 1] == " " and (after_comma or line[k:].split(" ", 1)[0] in _BREAKING)


_BREAKING = ("+", "-", "*", "/", "@", "if", "else", "and", "or", "for")
