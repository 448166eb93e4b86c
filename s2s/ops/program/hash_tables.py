"""Sets of what is known at run time, and dicts from keys that are to places in a list, where an
access takes O(1).

    hash_of(*keys)              {keys[0]: 0, keys[1]: 1, ...}
    hash_find(d, key)           d.get(key, -1)              hash_len(d)       len(d)
    hash_put(d, key, place)     d[key] = place              hash_keys(d)      list(d)
    hash_remove(d, key)         del d[key]                  hash_places(d)    list(d.values())
    hash_last(d)                next(reversed(d))

    set_of(*keys)               {keys[0], keys[1], ...}
    set_contains(s, key)        key in s                    hash_len(s)       len(s)
    set_add(s, key)             s.add(key)                  hash_keys(s)      list(s)
    set_discard(s, key)         s.discard(key)

A key has no derivative, and a place is an integer, so these have none: the reverse sweep reads the
places that the forward sweep has found.

In native code these are the sets and dicts that Numba has; its dicts keep their order, too.

Considered: open addressing in a list of integers, written as Python that Numba compiles. Measured
on numbers of 64 bits it finds one of 100 keys in 2 ns and one of 16,000 in 19 ns, Numba's dict in 6
and 10 ns, and takes 1.1 s to compile, Numba's dict 0.6 s. Linear search for up to 8 keys takes the
8 ns that a dict takes. Considered, too: a pass that gives each list in which is searched a dict
from items to places; but a key that is deleted would move all that come after it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...errors import UnsupportedError
from ...ir.builder import current, emit, join_types
from ...ir.graph import MISSING, Value
from ...ir.types import BOOL, INT, UNDEFINED, HashSet, HashTable, List, Scalar, Tuple, Type
from ..core.cast import as_dtype
from ..core.control import item, packed
from ..core.dependence_rules import anything
from ..core.record import define, lowers, no_jvp, no_vjp, value
from .list_ops import call_syntax, list_of, method_syntax


def _is_float(type: Type) -> bool:
    return isinstance(type, Scalar) and (type.dtype or "").startswith("float")


def _joined(table: HashTable | HashSet, key: Value) -> Type:
    """The type of a table that has this key, too."""
    match table.item, key.type:
        case Tuple(items), Tuple(parts) if len(items) == len(parts) and any(
                _is_float(a) != _is_float(b) for a, b in zip(items, parts)):
            raise UnsupportedError("tuples of integers and tuples with floats as keys of one dict",
                                   current().line, "make all of one kind: float(k), int(k)")
    return join_types(table, type(table)(key.type), "a key")


def _infer(table: HashTable | HashSet, keys: Sequence[Value]) -> Type:
    for key in keys:
        table = _joined(table, key)
    return table


def _known(key: Value):
    """A key that is known when code is generated; MISSING if it is not."""
    if key.op is not None and key.op.name == "tuple":
        parts = tuple(map(_known, key.op.inputs))
        return MISSING if MISSING in parts else parts
    return key.constant


def _known_keys(table: Value) -> list | None:
    """All keys of a table or set, if they are known when code is generated."""
    if table.op is None or table.op.record not in (hash_of, set_of):
        return None
    keys = list(map(_known, table.op.inputs))
    return None if any(key is MISSING for key in keys) else keys


def numbered(keys):
    """{keys[0]: 0, keys[1]: 1, ...}"""
    return {key: k for k, key in enumerate(keys)}


hash_of = define(
    "hash_of",  # `item`: the later type of the keys of an empty one
    evaluate=lambda *keys, item=None: numbered(keys),
    infer=lambda *keys, item=UNDEFINED: _infer(HashTable(item), keys),
    syntax=lambda *keys, item=None: ast.Dict(list(keys), list(map(ast.Constant, range(len(keys))))),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything, total=True,
)


def _fold_find(table: Value, key: Value):
    keys, key = _known_keys(table), _known(key)
    if keys == []:
        return value(-1)
    return None if keys is None or key is MISSING else value(numbered(keys).get(key, -1))


hash_find = define(
    "hash_find",
    evaluate=lambda table, key: table.get(key, -1),
    infer=lambda table, key: (_joined(table.type, key), INT)[1],
    fold=_fold_find,
    syntax=lambda table, key: method_syntax(table, "get", key, ast.Constant(-1)),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
    least=-1,
)


def _fold_put(table: Value, key: Value, place: Value):
    keys, known = _known_keys(table), _known(key)
    if keys is None or known is MISSING or known in keys or place.constant != len(keys):
        return None
    return emit(hash_of, *table.op.inputs, key, **table.op.attrs)


hash_put = define(
    "hash_put",
    evaluate=lambda table, key, place: {**table, key: place},
    infer=lambda table, key, place: _joined(table.type, key),
    fold=_fold_put,
    vjp=no_vjp,
    jvp=no_jvp,
    writes=0,
    views=(0,),
    depends=anything, total=True,
)
hash_remove = define(
    "hash_remove",
    evaluate=lambda table, key: {k: place for k, place in table.items() if k != key},
    infer=lambda table, key: _joined(table.type, key),
    vjp=no_vjp,
    jvp=no_jvp,
    writes=0,
    views=(0,),
    depends=anything, total=True,
)


def _fold_len(table: Value):
    keys = _known_keys(table)
    return None if keys is None else value(len(keys))


hash_len = define(
    "hash_len",
    evaluate=len,
    infer=lambda table: INT,
    fold=_fold_len,
    syntax=lambda table: call_syntax("len", table),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
    least=0,
)
hash_keys = define(
    "hash_keys",
    evaluate=list,
    infer=lambda table: List(table.type.item),  # those of a set, in any order
    fold=lambda table: None if _known_keys(table) is None else emit(list_of, *table.op.inputs),
    syntax=lambda table: call_syntax("list", table),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
)
hash_places = define(
    "hash_places",
    evaluate=lambda table: list(table.values()),
    infer=lambda table: List(INT),
    syntax=lambda table: call_syntax("list", method_syntax(table, "values")),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
)
hash_last = define(
    "hash_last",  # of a table that is not empty
    evaluate=lambda table: next(reversed(table)),
    infer=lambda table: table.type.item,
    fold=lambda table: table.op.inputs[-1] if _known_keys(table) else None,
    syntax=lambda table: call_syntax("next", call_syntax("reversed", table)),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
)


# ------------------------------------------------------------------------------------------- sets


def _syntax_of_set(*keys: ast.expr, item=None) -> ast.expr:
    return ast.Set(list(keys)) if keys else call_syntax("set")


set_of = define(
    "set_of",  # `item`: the later type of the members of an empty one
    evaluate=lambda *keys, item=None: set(keys),
    infer=lambda *keys, item=UNDEFINED: _infer(HashSet(item), keys),
    syntax=_syntax_of_set,
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything, total=True,
)


def _fold_contains(table: Value, key: Value):
    keys, key = _known_keys(table), _known(key)
    if keys == []:
        return value(False)
    return None if keys is None or key is MISSING else value(key in keys)


set_contains = define(
    "set_contains",
    evaluate=lambda table, key: key in table,
    infer=lambda table, key: (_joined(table.type, key), BOOL)[1],
    fold=_fold_contains,
    syntax=lambda table, key: ast.Compare(key, [ast.In()], [table]),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
)


def _fold_add(table: Value, key: Value):
    keys, known = _known_keys(table), _known(key)
    if keys is None or known is MISSING:
        return None
    return table if known in keys else emit(set_of, *table.op.inputs, key, **table.op.attrs)


def _fold_discard(table: Value, key: Value):
    keys, known = _known_keys(table), _known(key)
    if keys is None or known is MISSING:
        return None
    return emit(set_of, *(x for x, k in zip(table.op.inputs, keys) if k != known),
                **table.op.attrs)


set_add = define(
    "set_add",
    evaluate=lambda table, key: {*table, key},
    infer=lambda table, key: _joined(table.type, key),
    fold=_fold_add,
    vjp=no_vjp,
    jvp=no_jvp,
    writes=0,
    views=(0,),
    depends=anything, total=True,
)
set_discard = define(
    "set_discard",
    evaluate=lambda table, key: table - {key},
    infer=lambda table, key: _joined(table.type, key),
    fold=_fold_discard,
    vjp=no_vjp,
    jvp=no_jvp,
    writes=0,
    views=(0,),
    depends=anything, total=True,
)


# -------------------------------------------------------------------------------------- native code


def place_of_float(table, x):
    """table.get(x, -1) of a float, where all keys are integers."""
    k = int(x) if abs(x) < 2.0**63 else 0
    return table.get(k, -1) if k == x else -1


def contains_float(members, x):
    """x in members, where x is a float and all members are integers."""
    k = int(x) if abs(x) < 2.0**63 else 0
    return k == x and k in members


native_contains_float = define(
    "native_contains_float",
    evaluate=contains_float,
    infer=lambda table, x: BOOL,
    syntax=lambda table, x: call_syntax("contains_float", table, x),
    helper=contains_float,
)
native_set = define(
    "native_set",
    evaluate=set,
    infer=lambda keys: HashSet(keys.type.item),
    syntax=lambda keys: call_syntax("set", keys),
)
native_find = define(
    "native_find",
    evaluate=hash_find.evaluate,
    infer=lambda table, key: INT,
    # of Numba's dict, `get` may be None, as far as its type says
    syntax=lambda table, key: call_syntax("int", hash_find.syntax(table, key)),
)
native_find_float = define(
    "native_find_float",
    evaluate=place_of_float,
    infer=lambda table, x: INT,
    syntax=lambda table, x: call_syntax("place_of_float", table, x),
    helper=place_of_float,
)
def last_key(table):
    """The key that was put last into a table, in O(1)."""
    key, place = table.popitem()
    table[key] = place
    return key


native_last = define(
    "native_last",
    evaluate=hash_last.evaluate,
    infer=lambda table: table.type.item,
    syntax=lambda table: call_syntax("last_key", table),
    helper=last_key,
)
native_numbered = define(
    "native_numbered",
    evaluate=numbered,
    infer=lambda keys: HashTable(keys.type.item),
    syntax=lambda keys: call_syntax("numbered", keys),
    helper=numbered,
)


def exact_float(k):
    """float(k) of an integer that is a float; of others Python finds the place."""
    x = float(k)
    if abs(x) >= 2.0**53:
        raise ArithmeticError("an integer that no float may be equal to")
    return x


native_exact_float = define(
    "native_exact_float",
    evaluate=exact_float,
    infer=lambda k: Scalar("float64"),
    syntax=lambda k: call_syntax("exact_float", k),
    helper=exact_float,
)


def not_nan(x):
    """x; Python decides whether a NaN is the one that is there, or another."""
    if x != x:
        raise ArithmeticError("NaN as a key")
    return x


native_not_nan = define(
    "native_not_nan",
    evaluate=not_nan,
    infer=lambda x: x.type,
    syntax=lambda x: call_syntax("not_nan", x),
    helper=not_nan,
)


def _converted(key: Value, type: Type) -> Value:
    """A key of the one type that all keys of a table have in native code."""
    match type:
        case Tuple(items):
            parts = [item(key, index=k) for k in range(len(items))]
            return packed([_converted(part, t) for part, t in zip(parts, items)], type.form)
        case Scalar(dtype):
            if _is_float(type) and not _is_float(key.type) and key.type != BOOL:
                return native_exact_float(key)
            key = as_dtype(key, dtype) if dtype != key.type.dtype else key
            return native_not_nan(key) if _is_float(type) else key
    return key


@lowers(hash_of, set_of)
def _lower_of(op, *keys):
    made = native_numbered if op.record is hash_of else native_set
    item = op.output.type.item
    return made(list_of(*(_converted(key, item) for key in keys))) if keys else None


@lowers(hash_find)
def _lower_find(op, table, key):
    item = table.type.item
    if isinstance(item, Scalar) and _is_float(key.type) and not _is_float(item):
        return native_find_float(table, key)
    return native_find(table, _converted(key, item))


@lowers(hash_last)
def _lower_last(op, table):
    return native_last(table)


@lowers(hash_put)
def _lower_put(op, table, key, place):
    return hash_put(table, _converted(key, op.output.type.item), place)


@lowers(hash_remove, set_add, set_discard)
def _lower_by_key(op, table, key):
    return op.record(table, _converted(key, op.output.type.item))


@lowers(set_contains)
def _lower_contains(op, table, key):
    item = table.type.item
    if isinstance(item, Scalar) and _is_float(key.type) and not _is_float(item):
        return native_contains_float(table, key)
    return set_contains(table, _converted(key, item))
