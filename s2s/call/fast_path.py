"""The fast path of a call: a generated function for arguments of one kind, which does everything
between the caller and the code.

    def loss_grad(p, x, *rest):
        try:
            if (not rest and type(p) is dict and [*p] == c1 and type(x1 := p['w']) is ndarray
                    and type(x) is float and f.__code__ is c2):
                return {'w': native(x1, x)}
        except Exception:
            pass
        return again((p, x), rest)

It asks whether the arguments are of its kind and whether what the code was generated for is still
so, reads the leaves and the captured values, calls native code, and builds the result.  Whatever is
not so, and whatever is raised, goes to `again`, which looks closer and explains: native code
changes nothing, so it may run a second time.  Native code itself says whether lengths are of the
kind (runtime/call/native_function.py, `entry_guard`), and Numba's dispatcher, in C, whether dtypes,
ranks and layouts are; where all leaves are Python's own numbers, not even that is left to ask.

Three designs were measured.  A method that calls one function to check the arguments, and another
to flatten them, was five Python calls deep: 17 times a bare call of Numba.  Making a transformed
function one of Numba's dispatchers leaves no Python at all, but then nothing reads captured values,
notices that a function was redefined, or flattens containers.  This is one Python function, in the
slot `__call__` of the transformed function, so that Python enters it with the caller's own
arguments.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..errors import ShapeMismatchError, TypeMismatchError
from ..front.syntax.captures import (
    Closed,
    Fixed,
    Global,
    Item,
    Keys,
    Length,
    Member,
    Saved,
    leaves_by_place,
)
from ..front.syntax.dependencies import (
    LENGTHS,
    Absent,
    Called,
    Code,
    Defaults,
    Defined,
    EqualShapes,
    Imported,
    Kind,
    Noted,
    is_same,
)
from ..ir.graph import Function
from ..ir.treedef import form_of, is_container
from ..ir.types import Array, Scalar, Static, Tuple, Type
from ..lazy_import import later
from ..ops.program.custom_rules import RULES, rules_given
from ..runtime.call.type_guards import ANYTHING, Kinds, Names, arguments
from ..runtime.entry.shared_arguments import are_apart
from .flatten import Compiled, result_expression

numba_code = later("s2s.runtime.call.native_function")

TooHard = np.exceptions.TooHardError if hasattr(np, "exceptions") else np.TooHardError
FUNCTIONS_ASKED = {"are_apart": are_apart}
MISSING = object()  # marks an omitted argument
NONE: Mapping[str, object] = MappingProxyType({})  # no keywords
SIMPLE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD,
          inspect.Parameter.KEYWORD_ONLY)


def direct(name: str, signature: inspect.Signature, args: Sequence, call: Callable,
           getters: Sequence[Callable], consulted: dict[Callable, object], agreed: Sequence[str],
           apart: str | None, again: Callable, fixed: Sequence[int] = (), out=None,
           keywords: Sequence[str] = ()) -> Callable | None:
    """Build the function to run for arguments of the kinds of `args`, in the order of `signature`;
    None for kinds that need a slower check.

    `call(*args, *captured)` is what runs, whose captured values `getters` read; `agreed` are
    conditions on `a0`, `a1`, ..., which hold of calls that are in order, as does `apart`, where
    given, of arguments that share no memory; `again(values, rest)` is
    called where this function cannot tell.  The arguments numbered in `fixed` are static.  With
    `out`, calls are meant that are given such a tree of arrays to write the results into.  The
    parameters `keywords` are given, in this order, to the function's `**`.
    """
    parameters = spread(signature, len(args))
    if len(parameters) != len(args) or any(p.kind not in SIMPLE for p in parameters):
        return None
    own = name if name.isidentifier() else "call"
    names = Names([own, *(p.name for p in parameters)])
    named = (names.new("named")
             if keywords or any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
             else None)
    takes_out = "out" not in names.taken and named is None  # else it is the program's
    given = names.new("out")
    native = getattr(getattr(call, "native", None), "whole", None)
    native = (native if native is not None and isinstance(native, numba_code.Native)
              and native.is_pure and (not native.is_sanitized or out is not None) else None)
    kinds = Kinds(names, native is None, LENGTHS in consulted)
    for k, (p, x) in enumerate(zip(parameters, args)):
        read = f"({p.name} := {named}[{p.name!r}])" if p.name in keywords else p.name
        if k in fixed:
            kinds.conditions.append(same(read, x, names))
        elif not kinds.describe(x, p.name, read):
            return None
    everyone = [p.name for p in parameters]
    parameters = [p for p in parameters if p.name not in keywords]
    values = [p.name for p in parameters]
    for getter in getters:
        value = names.new("v")
        values.append(value)
        everyone.append(value)
        content, first = getter(), len(kinds.leaves)
        if not kinds.describe(content, value, f"({value} := {read_expression(getter, names)})"):
            return None
        if consulted.get(EqualShapes(getter)):
            kinds.conditions += equal_shapes(content, kinds.leaves[first:])
    if takes_out and out is None:
        kinds.conditions.append(f"{given} is None")
    read = set(getters)
    order = f"[*{named}] == {names.given([*keywords], 'order')}" if keywords else f"not {named}"
    conditions = [*([order] if named else []), *kinds.conditions,
                  *(current(getter, content, names) for getter, content in consulted.items()
                    if not (isinstance(getter, (Noted, Fixed)) or isinstance(getter, Kind)
                            and getter.of in read or isinstance(getter, EqualShapes)
                            and content and getter.of in read))]
    if apart is not None:
        conditions.append(renamed(apart, everyone, names))
    if out is not None:
        taken = native and outputs(call.function, out, given, names)
        if not taken or not taken[0].leaves or not all(isinstance(y.type, (Array, Scalar))
                                                       for y in native.function.results):
            return None
        body = out_statements(call, native, [*conditions, *taken[0].conditions], kinds, *taken,
                              names)
    elif native is None:
        conditions += [renamed(text, values, names) for text in agreed]
        body = guarded(conditions, f"{names.given(call, 'run')}({', '.join(values)})", names)
    else:
        body = run_statements(call, native, conditions, kinds, names)
    text = (f"def {own}({header(parameters, names, given if takes_out else None)}"
            f"{f', **{named}' if named else ''}):\n{body}")
    text += ("    return "
             f"{names.given(again, 'again')}(({''.join(f'{p.name}, ' for p in parameters)}), "
             f"{names.rest}, {given if takes_out else None}{f', {named}' if named else ''})\n")
    exec(compile(text, f"<s2s call of {name}>", "exec"), names.content)
    return names.content[own]


def equal_shapes(content, places: Sequence[str]) -> list[str]:
    """Return the conditions under which arrays in the same place of the items of lists have the
    same shapes; `places` are the names of the leaves.
    """
    groups: dict[str, list[str]] = {}
    leaves = [each for each in leaves_by_place(content) if each[1] is not None]
    for (path, leaf), place in zip(leaves, places, strict=True):
        if isinstance(leaf, np.ndarray):
            groups.setdefault(path, []).append(f"{place}.shape")
    return [" == ".join(group) for group in groups.values() if len(group) > 1]


def spread(signature: inspect.Signature, count: int) -> list[inspect.Parameter]:
    """Return the parameters with those of `*args` one by one, and without `**`, where a call gives
    `count` arguments.

    Their names are such as nobody gives to a keyword.  Considered: positional parameters, which
    would make those before them positional, too; and members of the tuple of the rest, which every
    condition would have to read again.
    """
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    found = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            found += [inspect.Parameter(f"_{p.name}_{k}_", p.POSITIONAL_OR_KEYWORD)
                      for k in range(count - len(parameters) + 1)]
        else:
            found.append(p)
    return found


def header(parameters: Sequence[inspect.Parameter], names: Names, out: str | None) -> str:
    """Return the parameters, as a caller may pass them."""
    missing = names.given(MISSING, "missing")
    texts = []
    for k, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and (k == 0 or parameters[k - 1].kind is not p.KEYWORD_ONLY):
            texts.append(f"*{names.rest}")
        texts.append(f"{p.name}={missing if p.default is p.empty else names.given(p.default, 'd')}")
        if p.kind is p.POSITIONAL_ONLY and (k + 1 == len(parameters)
                                            or parameters[k + 1].kind is not p.POSITIONAL_ONLY):
            texts.append("/")
    if not any(p.kind is p.KEYWORD_ONLY for p in parameters):
        texts.append(f"*{names.rest}")
    return ", ".join(texts if out is None else [*texts, f"{out}=None"])


def guarded(conditions: Sequence[str], run: str, names: Names) -> str:
    """Return statements that `run` where the `conditions` hold; exceptions propagate to the caller.
    """
    like = names.new("like")
    return (f"    try:\n        {like} = not {names.rest} and {joined(conditions)}\n    except "
            f"Exception:\n        {like} = False\n" f"    if {like}:\n        return {run}\n")


def run_statements(call: Compiled, native: numba_code.Native, conditions: Sequence[str],
                   kinds: Kinds, names: Names) -> str:
    """Return statements that run native code where the `conditions` hold, and build the result."""
    if call.native.fits != "False":
        conditions = [*conditions,
                      *(renamed(text, kinds.leaves, names) for text in native.required)]
    code = (native.of_numbers() if kinds.are_numbers and "dispatcher" in vars(native)
            else native_form(call, native, "dispatcher", names))

    def lines(run: str) -> list[str]:
        before, result = result_expression(f"{run}({kinds.arguments()})", call.function, names,
                                           narrow=True)
        return [*before, f"return {result}"]

    return try_ways(conditions,
                    [lines(run) for run in native_calls(call, code, "run", kinds.leaves, names)],
                    names)


def native_calls(call: Compiled, whole: Callable, method: str, leaves: Sequence[str],
                 names: Names) -> list[str]:
    """Return the code to call: the `whole`, or one selected by the lengths of the arguments where
    they matter; then the code to call if that raises MoreWork.
    """
    native = call.native
    if native.fits == "True":
        own, chosen = names.given(whole, "native"), names.given(native, "chosen")
        return [own] if native is native.whole else [own, f"{chosen}.{method}"]
    chosen = names.given(native, "chosen")
    if native.key:
        chosen = (
            f"{names.given(native.remembered, 'known')}.get({renamed(native.key, leaves, names)}, "
            f"{chosen})")
    if native.fits == "False":
        return [f"{chosen}.{method}"]
    return [f"({names.given(whole, 'native')} if {renamed(native.fits, leaves, names)} else "
            f"{chosen}.{method})", f"{chosen}.{method}"]


def try_ways(conditions: Sequence[str], ways: Sequence[Sequence[str]], names: Names) -> str:
    """Return statements that take the first of the `ways` where the `conditions` hold, and the next
    where that takes less work; exceptions are discarded.
    """
    text = (f"    try:\n        if not {names.rest} and {joined(conditions)}:\n"
            + "".join(f"            {line}\n" for line in ways[0]))
    if len(ways) > 1:
        text += (f"    except {names.given(numba_code.MoreWork, 'MoreWork')}:\n        try:\n"
                 + "".join(f"            {line}\n" for line in ways[1]))
        text += "        except Exception:\n            pass\n"
    return text + "    except Exception:\n        pass\n"


def native_form(call: Compiled, whole: numba_code.Native, form: str, names: Names) -> Callable:
    """Return the `form` of the `whole` code, "dispatcher" or "into"; before a call has needed it,
    the selection for each call.
    """
    if form in vars(whole):
        return getattr(whole, form)
    method = "run" if form == "dispatcher" else form

    def chosen(*args):
        result = getattr(call.native, method)(*args)
        if form in vars(whole):
            names.content[names.given(chosen, "native")] = getattr(whole, form)
        return result

    return chosen


def outputs(function: Function, out, place: str,
            names: Names) -> tuple[Kinds, list[str | None]] | None:
    """Return the conditions under which output arrays are like `out`, and the position of that for
    each result, None for numbers.

    None if `out` is no tree like the results.
    """
    results = (Tuple(tuple(y.type for y in function.results)) if function.tupled
               else function.results[0].type)
    kinds, are_arrays = Kinds(names, shapes=False), []
    try:
        if not kinds.describe(arrays_of(out, results, are_arrays), place):
            return None
    except (TypeError, ValueError, LookupError, AttributeError):  # members are missing
        return None
    rest = iter(kinds.leaves)
    return kinds, [next(rest) if is_array else None for is_array in are_arrays]


def arrays_of(x, type: Type, are_arrays: list[bool]):
    """Replace in `x` everything that is no array, where `type` has data; TypeError where it has
    something else in place of an array.
    """
    if isinstance(type, Tuple):
        form = form_of(x)
        members = list(x) if form is None else form.members(x)
        found = [arrays_of(member, inner, are_arrays)
                 for member, inner in zip(members, type.items, strict=True)]
        return tuple(found) if form is None else form.build(found)
    if isinstance(type, Static):
        return ANYTHING
    are_arrays.append(isinstance(type, Array))
    if are_arrays[-1] and not isinstance(x, np.ndarray):
        raise TypeError
    return x if are_arrays[-1] else ANYTHING


def out_statements(call: Compiled, native: numba_code.Native, conditions: Sequence[str],
                   kinds: Kinds, taken: Kinds, arrays: Sequence[str | None], names: Names) -> str:
    """Return statements that let native code write into the given and `taken` arrays, where the
    `conditions` hold, and build the results.
    """
    leaves, rows = [*kinds.leaves, *taken.leaves], {**kinds.rows, **taken.rows}
    conditions = [*conditions, *(renamed(text, leaves, names) for text in native.required)]
    numbers = [names.new("y") for place in arrays if place is None]
    rest = iter(numbers)
    parts = [next(rest) if place is None else place for place in arrays]
    before, result = result_expression(f"({arguments(parts, rows)},)" if len(parts) != 1
                                       else parts[0], call.function, names, narrow=True)
    ways = [[f"{''.join(f'{y}, ' for y in numbers) or '_'} = {run}({arguments(leaves, rows)})",
             *before, f"return {result}"]
            for run in native_calls(call, native_form(call, native, "into", names), "into", leaves,
                                    names)]
    return try_ways(conditions, ways, names)


def joined(conditions: Sequence[str]) -> str:
    return " and ".join(conditions) or "True"


def renamed(text: str, values: Sequence[str], names: Names) -> str:
    """Rename a condition on `a0`, `a1`, ... to one on `values`."""
    tree = ast.parse(f"({text})", mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = (values[int(node.id[1:])] if node.id[1:].isdigit()
                       else names.given(FUNCTIONS_ASKED.get(node.id)
                                        or getattr(builtins, node.id), node.id))
    return f"({ast.unparse(tree)})"


def read_expression(getter: Callable, names: Names) -> str:
    """Return Python that reads what `getter` reads, without calling it where possible."""
    match getter:
        case Global():
            return f"{names.given(getter.namespace, 'n')}[{getter.name!r}]"
        case Closed():
            return f"{names.given(getter.cell, 'n')}.cell_contents"
        case Member() if getter.name.isidentifier():
            return f"{read_expression(getter.owner, names)}.{getter.name}"
        case Item():
            return f"{read_expression(getter.owner, names)}[{names.given(getter.key, 'k')}]"
        case Length():
            return f"{names.given(len, 'len')}({read_expression(getter.owner, names)})"
        case Keys():
            return f"{names.given(tuple, 'tuple')}({read_expression(getter.owner, names)})"
        case Fixed() | Saved():
            return names.given(getter.content, "c")
        case Code():
            return f"{names.given(getter.function, 'f')}.__code__"
        case Defaults():
            return f"{names.given(getter.function, 'f')}.__defaults__"
        case Defined() if getter.name.isidentifier():
            return f"{names.given(getter.cls, 'c')}.{getter.name}"
        case Called():
            return f"{names.given(type, 'type')}({names.given(getter.of, 'c')}).__call__"
        case Imported():
            return f"{names.given(sys.modules, 'n')}[{getter.name!r}]"
    return f"{names.given(getter, 'get')}()"


def current(getter: Callable, content, names: Names) -> str:
    """Test whether `getter` still reads `content`."""
    if getter is rules_given and not RULES:
        return f"not {names.given(RULES, 'rules')}"
    if isinstance(getter, Absent):
        return f"{getter.name!r} not in {names.given(getter.namespace, 'n')}"
    read = read_expression(getter, names)
    if isinstance(getter, (Code, Defaults)):
        return f"{read} is {names.given(content, 'c')}"
    now = names.new("now")
    kept = names.given(content, "c")
    if is_same(content, content):
        return f"(({now} := {read}) is {kept} or {names.given(is_same, 'same')}({now}, {kept}))"
    return f"{read} is {kept}"


def same(place: str, x, names: Names) -> str:
    """Test whether the static argument at `place` is `x`."""
    if type(x) in (int, str, bool):
        kind = names.given(type(x), type(x).__name__)
        return (f"{names.given(type, 'type')}({place}) is {kind} and {place} == "
                f"{names.given(x, 'c')}")
    return f"{place} is {names.given(x, 'c')}"


def repeated(call: Callable, signature: inspect.Signature, count: int) -> Callable:
    """Return `again` for `call`, of `count` arguments: it passes them on exactly as the caller gave
    them.
    """
    parameters = spread(signature, count)

    def again(values: tuple, rest: tuple, out=None, named: Mapping[str, object] = NONE):
        args, keywords = [], {**named, **({} if out is None else {"out": out})}
        for k, (p, x) in enumerate(zip(parameters, values)):
            if x is MISSING:
                continue
            if p.kind is p.KEYWORD_ONLY or len(args) < k:
                keywords[p.name] = x
            else:
                args.append(x)
        return call(*args, *rest, **keywords)

    return again


def written(results, out):
    """Copy `results` into the arrays of `out`, a tree of their structure with anything for numbers,
    and return them with these arrays.

    Raises TypeMismatchError or ShapeMismatchError, with nothing written, where `out` is none such,
    cannot be written, or would have to hold two results in one place.
    """
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    made = _paired(results, out, "out", pairs)
    for k, (into, _) in enumerate(pairs):
        if any(share(into, other) for other, _ in pairs[:k]):
            raise TypeMismatchError("two arrays of out share memory, and are for two results", None,
                                    "give each an array of its own")
    found = [y.copy() if any(np.may_share_memory(y, into) for into, _ in pairs) else y
             for _, y in pairs]
    for (into, _), y in zip(pairs, found):
        into[...] = y
    return made


def _paired(y, out, place: str, pairs: list):
    """Return the result `y` with the arrays of `out` in place of its own; add the copies to be made
    to `pairs`.
    """
    if is_container(y):
        form = form_of(y)
        if (type(out) is not type(y) or form_of(out) != form
                or (form is None and len(out) != len(y))):
            raise TypeMismatchError(f"{place} is {display_name(out)}, and the result is "
                                    f"{display_name(y)}", None, "give a tree of the structure of "
                                    "the result, such as the last " "result")
        if form is None:
            return tuple(_paired(a, b, f"{place}[{k}]", pairs)
                         for k, (a, b) in enumerate(zip(y, out)))
        members = zip(form.keys, form.members(y), form.members(out))
        spelled = "{}[{!r}]" if form.kind in ("dict", "list") else "{}.{}"
        return form.build([_paired(a, b, spelled.format(place, key), pairs)
                           for key, a, b in members])
    if not isinstance(y, np.ndarray):
        if isinstance(out, np.ndarray):
            raise TypeMismatchError(f"{place} is an array, and the result there is a number", None,
                                    "give None there: it is returned")
        return y
    if type(out) is not np.ndarray:
        raise TypeMismatchError(f"{place} is {display_name(out)}, and the result there is an array",
                                None, "give an array, such as the last result")
    if out.shape != y.shape:
        raise ShapeMismatchError(f"{place} has the shape {out.shape}, and the result there "
                                 f"{y.shape}", None, "give arrays of the results' shapes")
    if out.dtype != y.dtype:
        raise TypeMismatchError(f"{place} is of {out.dtype}, and the result there of {y.dtype}",
                                None, "give arrays of the results' dtypes")
    if not out.flags.writeable:
        raise TypeMismatchError(f"{place} is read-only", None, "give an array that can be written")
    pairs.append((out, y))
    return out


def display_name(x) -> str:
    """Return the name of `x` in messages."""
    if is_container(x):
        return str(form_of(x) or f"a tuple of {len(x)}")
    return "None" if x is None else f"a {type(x).__name__}"


def share(a: np.ndarray, b: np.ndarray) -> bool:
    """Test whether two arrays share memory, as far as that can be decided quickly."""
    try:
        return bool(np.shares_memory(a, b, max_work=1000))
    except TooHard:
        return True
