"""Operations on a string, or a member of an enum, that is one of several words: done for each word
when code is generated, and looked up by its number at run time.

    "ACGT".index(c)      becomes    [0, 1, 2, 3][code of c]
    weights[c]           becomes    [w_a, w_c, w_g, w_t][code of c]
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence

from ...ir.graph import OPERATORS, Value
from ...ops.core.record import RECORDS, value
from ..domain.frame import Frame, Text
from ..domain.functions import ConditionalFunction, FunctionValue
from ..domain.heap import Cell, Container
from .lists import conditional_item, new_list, take_item
from .strings import code_of, looked_up, word, words_of

MOST = 400  # combinations of words
UNKNOWN = object()  # no operation on words


def combinations(args: tuple) -> tuple[Value, list[tuple]] | None:
    """Return the number of what `args` are at run time, and what they may be; None if one of them
    is not one of several words, or a tuple of such, and not known either.
    """
    texts = list(dict.fromkeys(_texts(args)))
    words = [words_of(text) for text in texts]
    if not texts or None in words or math.prod(map(len, words)) > MOST:
        return None
    code = value(0)
    for text, each in zip(texts, words):
        code = code * value(len(each)) + code_of(text, each)
    return code, [_replaced(args, dict(zip(texts, found))) for found in itertools.product(*words)]


def _texts(binding):
    if isinstance(binding, Text):
        yield binding
    elif type(binding) is tuple:
        for item in binding:
            yield from _texts(item)


def _replaced(binding, words: dict):
    if isinstance(binding, Text):
        return words[binding]
    if type(binding) is tuple:
        return tuple(_replaced(item, words) for item in binding)
    return binding


def by_word(frame: Frame, compute: Callable, *args):
    """Return compute(*args), where some of them are one of several words; UNKNOWN if that is not
    known for each of these.
    """
    known = combinations(args)
    if known is None or not all(map(frame.is_static, known[1])):
        return UNKNOWN
    code, several = known
    try:
        results = [compute(*each) for each in several]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return UNKNOWN  # it raises for a word that may never come
    if not all(isinstance(x, (str, int, float, complex)) for x in results):
        return UNKNOWN
    return picked(frame, results, code)


def picked(frame: Frame, items: list, code: Value):
    """Return the item of this number."""
    if all(type(x) is type(items[0]) and not isinstance(x, (Value, Cell, Container))
           and x == items[0] for x in items):
        return items[0]
    if all(isinstance(x, str) for x in items):
        words = tuple(dict.fromkeys(items))
        return word(looked_up([words.index(x) for x in items], code), words)
    if all(isinstance(x, (str, Text)) for x in items) and None not in map(words_of, items):
        return _picked_word(frame, items, code)
    if all(isinstance(x, bool) for x in items) and items.count(True) == 1:
        return OPERATORS["equal"](code, value(items.index(True)))
    if all(type(x) in (bool, int) for x in items):
        return looked_up(items, code)
    if all(isinstance(x, FunctionValue) for x in items):
        found = items[-1]
        for k in reversed(range(len(items) - 1)):
            found = ConditionalFunction(OPERATORS["equal"](code, value(k)), (items[k], found))
        return found
    if any(isinstance(x, (Cell, Container)) for x in items):
        return conditional_item(frame, code, tuple(items))
    return take_item(frame, new_list(frame, items), code)


def same_words(frame: Frame, items: Sequence, x) -> list | None:
    """Return whether each item is equal to `x`, where some of them are words that a run picks, and
    others may be strings and None; None if that is not known of one of them.
    """
    found = [each == x if all(y is None or isinstance(y, str) for y in (each, x))
             else by_word(frame, operator.eq, each, x) for each in items]
    return None if UNKNOWN in found else found


def count_word(frame: Frame, items: Sequence, x):
    """Return items.count(x), where some of them are words that a run picks; UNKNOWN for others."""
    found = (same_words(frame, items, x) if any(isinstance(each, Text) for each in (x, *items))
             else None)
    return UNKNOWN if found is None else sum(map(value, found), value(0))


def _picked_word(frame: Frame, items: list, code: Value) -> Text:
    """Return the item of this number, where some of them are words that a run picks."""
    several = [words_of(x) for x in items]
    words = tuple(dict.fromkeys(itertools.chain.from_iterable(several)))
    codes = [code_of(x, words) for x in items]
    return word(take_item(frame, new_list(frame, codes), code), words)


def keys_by_word(key) -> tuple[Value, list] | None:
    """Return the number of a key that is one of several words, and these; None for another key."""
    known = combinations((key,))
    return known and (known[0], [each for (each,) in known[1]])


def is_numbered(code: Value, numbers: list[int]) -> Value:
    """Return whether `code` is one of these numbers."""
    found = value(False)
    for k in numbers:
        found = RECORDS["or_"](found, OPERATORS["equal"](code, value(k)))
    return found
