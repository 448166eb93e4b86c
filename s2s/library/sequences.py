"""Functions of sequences as plain Python, which the front end inlines.

`order_of`, `by_keys`, `indexable` and `finite_sum` are questions that the front end answers itself
(see front/eval/sequence_calls.py).
"""

from __future__ import annotations

import bisect
import cmath
import heapq
import math

import numpy as np

from .declarations import implements


def order_of(keys, reverse):
    """Return the indices that sort `keys`."""


def indexable(source):
    """Return `source` as something that has a length and indices."""


def listed(source):
    items = []
    for x in source:
        items.append(x)
    return items


def column(rows, k):
    return [row[k] for row in rows]


def shortest(rows):
    """The least length of a number of rows, of which there may be none."""
    count = len(rows[0]) if len(rows) > 0 else 0
    for row in rows:
        count = min(count, len(row))
    return count


def repeated(x, n):
    return [x for _ in range(n)]


def summed(source, start):
    total = start
    for x in source:
        total = total + x
    return total


def any_of(source):
    for x in source:
        if x:
            return True
    return False


def all_of(source):
    for x in source:
        if not x:
            return False
    return True


def filtered(function, source):
    items = []
    for x in source:
        if function(x):
            items.append(x)
    return items


def filtered_true(source):
    items = []
    for x in source:
        if x:
            items.append(x)
    return items


def filtered_false(function, source):
    items = []
    for x in source:
        if not function(x):
            items.append(x)
    return items


def taken_while(function, source):
    items = []
    for x in source:
        if not function(x):
            break
        items.append(x)
    return items


def dropped_while(function, source):
    items = []
    dropping = True
    for x in source:
        if dropping and function(x):
            continue
        dropping = False
        items.append(x)
    return items


def selected(data, selectors):
    items = []
    for x, s in zip(data, selectors):
        if s:
            items.append(x)
    return items


def extreme(items, key, larger, nothing):
    if len(items) == 0:
        raise ValueError(nothing)
    best = items[0]
    most = key(best)
    for x in items[1:]:
        k = key(x)
        if larger(k, most):
            best, most = x, k
    return best


def largest_of_vector(x):
    """max(x), in which a NaN is never larger than another number, nor another number than it.  Of
    nothing np.argmax raises ValueError, as max does.
    """
    if x.dtype.kind != "f":
        return x[np.argmax(x)]
    k = np.argmax(np.where(np.isnan(x), -np.inf, x))
    return x[0 if np.isnan(x[0]) else k]


def smallest_of_vector(x):
    """min(x), with NaN as in `largest_of_vector`."""
    if x.dtype.kind != "f":
        return x[np.argmin(x)]
    k = np.argmin(np.where(np.isnan(x), np.inf, x))
    return x[0 if np.isnan(x[0]) else k]


def extreme_or(items, key, larger, default):
    if len(items) == 0:
        return default
    return extreme(items, key, larger, "")


def mapped(items, key):
    return [key(x) for x in items]


def by_keys(items, keys, reverse):
    """Return `items` in the order of their keys."""


def sorted_by(items, key, reverse):
    keys = mapped(items, key)
    return by_keys(items, keys, reverse)


def ordered(items, keys, reverse):
    order = order_of(keys, reverse)
    return [items[k] for k in order]


def merged(items, keys, after):
    order = merged_order(keys, after)
    return [items[k] for k in order]


def merged_order(keys, after):
    """Return the order of `keys`, where some come `after` others: a stable bottom-up merge sort."""
    order = list(range(len(keys)))
    width = 1
    while width < len(order):
        following = []
        for start in range(0, len(order), 2 * width):
            i = start
            j = min(start + width, len(order))
            middle = j
            end = min(start + 2 * width, len(order))
            while i < middle or j < end:
                if j == end or i < middle and not after(keys[order[i]], keys[order[j]]):
                    following.append(order[i])
                    i += 1
                else:
                    following.append(order[j])
                    j += 1
        order = following
        width = 2 * width
    return order


def heap_down(heap, first, k):
    """heapq._siftdown."""
    new = heap[k]
    while k > first:
        above = (k - 1) >> 1
        parent = heap[above]
        if new < parent:
            heap[k] = parent
            k = above
        else:
            break
    heap[k] = new


def heap_up(heap, k):
    """heapq._siftup."""
    end = len(heap)
    first = k
    new = heap[k]
    child = 2 * k + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[k] = heap[child]
        k = child
        child = 2 * k + 1
    heap[k] = new
    heap_down(heap, first, k)


@implements(heapq.heappush)
def heap_push(heap, item):
    heap.append(item)
    heap_down(heap, 0, len(heap) - 1)


@implements(heapq.heappop)
def heap_pop(heap):
    last = heap.pop()
    if len(heap) == 0:
        return last
    least = heap[0]
    heap[0] = last
    heap_up(heap, 0)
    return least


@implements(heapq.heapreplace)
def heap_replace(heap, item):
    least = heap[0]
    heap[0] = item
    heap_up(heap, 0)
    return least


@implements(heapq.heappushpop)
def heap_push_pop(heap, item):
    if len(heap) > 0 and heap[0] < item:
        item, heap[0] = heap[0], item
        heap_up(heap, 0)
    return item


@implements(heapq.heapify)
def heap_make(heap):
    for k in range(len(heap) // 2 - 1, -1, -1):
        heap_up(heap, k)


@implements(bisect.bisect_right)
def place_after(a, x, lo=0, hi=None, *, key=None):
    """bisect.bisect_right."""
    return place_beside(a, x, lo, hi, key, True)


@implements(bisect.bisect_left)
def place_before(a, x, lo=0, hi=None, *, key=None):
    """bisect.bisect_left."""
    return place_beside(a, x, lo, hi, key, False)


def place_beside(a, x, lo, hi, key, after):
    """The place in a sorted list at which x keeps it sorted, before or `after` its equals."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle] if key is None else key(a[middle])
        if (not x < item) if after else item < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


@implements(bisect.insort_right)
def insert_after(a, x, lo=0, hi=None, *, key=None):
    """bisect.insort_right."""
    a.insert(place_after(a, x if key is None else key(x), lo, hi, key=key), x)


@implements(bisect.insort_left)
def insert_before(a, x, lo=0, hi=None, *, key=None):
    """bisect.insort_left."""
    a.insert(place_before(a, x if key is None else key(x), lo, hi, key=key), x)


@implements(heapq.nlargest)
def largest(n, source, key=None):
    return sorted(source, key=key, reverse=True)[:n]


@implements(heapq.nsmallest)
def smallest(n, source, key=None):
    return sorted(source, key=key)[:n]


def reduced(function, items):
    if len(items) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    total = items[0]
    for x in items[1:]:
        total = function(total, x)
    return total


def reduced_from(function, source, start):
    total = start
    for x in source:
        total = function(total, x)
    return total


def accumulated(items, function):
    totals = []
    if len(items) > 0:
        total = items[0]
        totals.append(total)
        for x in items[1:]:
            total = function(total, x)
            totals.append(total)
    return totals


def accumulated_from(source, function, start):
    total = start
    totals = [total]
    for x in source:
        total = function(total, x)
        totals.append(total)
    return totals


def pairs(items):
    found = []
    n = len(items)
    for i in range(n):
        for j in range(i + 1, n):
            found.append((items[i], items[j]))
    return found


def triples(items):
    found = []
    n = len(items)
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                found.append((items[i], items[j], items[k]))
    return found


def pairs_with_replacement(items):
    found = []
    n = len(items)
    for i in range(n):
        for j in range(i, n):
            found.append((items[i], items[j]))
    return found


def pairs_in_any_order(items):
    found = []
    n = len(items)
    for i in range(n):
        for j in range(n):
            if i != j:
                found.append((items[i], items[j]))
    return found


@implements(math.prod)
def product_of(source, *, start=1):
    total = start
    for x in source:
        total = total * x
    return total


def greatest_divisor(*numbers):
    a = 0
    for b in numbers:
        a = abs(a)
        b = abs(b)
        while b != 0:
            a, b = b, a % b
    return a


def least_multiple(*numbers):
    total = 1
    for b in numbers:
        if b == 0:
            return 0
        total = total // greatest_divisor(total, b) * abs(b)
    return total


def factorial(n):
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    total = 1
    for k in range(2, n + 1):
        total = total * k
    return total


def require_natural(n, k):
    """Raise as math.comb and math.perm do for negative numbers."""
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")


def choose(n, k):
    require_natural(n, k)
    total = 1
    for j in range(min(k, n - k)):
        total = total * (n - j) // (j + 1)
    return total if k <= n else 0


def arrange(n, k=None):
    if k is None:
        return factorial(n)
    require_natural(n, k)
    total = 1
    for j in range(k):
        total = total * (n - j)
    return total


def integer_root(n):
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    if n < 2:
        return n
    x = n
    y = (x + n // x) // 2
    while y < x:
        x = y
        y = (x + n // x) // 2
    return x


@implements(math.isclose, cmath.isclose)
def is_close(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    if rel_tol < 0 or abs_tol < 0:
        raise ValueError("tolerances must be non-negative")
    if a == b:
        return True
    d = abs(a - b)
    if d > 1.7976931348623157e308:
        return False
    return d <= abs(rel_tol * b) or d <= abs(rel_tol * a) or d <= abs_tol


@implements(math.modf)
def parts(x):
    whole = np.trunc(float(x))
    return math.copysign(0.0 if math.isinf(x) else x - whole, x), math.copysign(whole, x)


@implements(math.ldexp)
def scaled(x, i):
    """math.ldexp: rounded once, whether 2.0**i is a number or not."""
    # as an integer, 2.0**-1060 is 1 / 2.0**1060 in compiled code
    k = float(max(min(i, 2200), -2124))
    if k > 2000:
        y = x * 2.0**1000 * 2.0**1000 * 2.0 ** (k - 2000)
    elif k > 1000:
        y = x * 2.0**1000 * 2.0 ** (k - 1000)
    elif k < -2070:
        y = x * 2.0**-1050 * 2.0 ** (k + 1050)
    elif k < -1074:
        y = x * 2.0**-1000 * 2.0 ** (k + 1000)
    else:
        y = x * 2.0**k
    if math.isinf(y) and not math.isinf(x):
        raise OverflowError("math range error")
    return y


@implements(math.frexp)
def mantissa_and_exponent(x):
    if x == 0 or not math.isfinite(x):
        return float(x), 0
    e = math.floor(math.log2(abs(x))) + 1
    m = (x * 2.0**600 * 2.0 ** (-600 - e) if e < -600 else x * 2.0**-600 * 2.0 ** (600 - e)
         if e > 600 else x * 2.0**-e)
    if abs(m) >= 1.0:  # the logarithm was rounded up to an integer, or down from one
        return 0.5 * m, e + 1
    if abs(m) < 0.5:
        return 2.0 * m, e - 1
    return m, e


@implements(cmath.log)
def complex_log(z, base=None):
    """cmath.log."""
    if base is None:
        return cmath.log(z)
    below = cmath.log(base)
    if below == 0:
        raise ValueError("math domain error")
    return cmath.log(z) / below


def require_item(taken, count):
    """Raise what next() raises of an iterator that has given all its items."""
    if count <= taken:
        raise StopIteration


def require_equal(n, m, shorter, longer):
    """Raise as zip(..., strict=True) does."""
    if m < n:
        raise ValueError(shorter)
    if m > n:
        raise ValueError(longer)


def finite_sum(items):
    """math.fsum(items), which the front end knows to raise no ValueError."""


def exact_sum(items):
    """math.fsum, where its ValueError is caught."""
    up = down = False
    for x in items:
        if x == math.inf:
            up = True
        if x == -math.inf:
            down = True
    if up and down:
        raise ValueError("-inf + inf in fsum")
    return finite_sum(items)


@implements(math.remainder)
def rest_of_nearest(x, y):
    """math.remainder: exact, since the difference of numbers within a factor of two of each other
    is exact.
    """
    if (math.isinf(x) or y == 0) and not (math.isnan(x) or math.isnan(y)):
        raise ValueError("math domain error")
    a, b = abs(x), abs(y)
    below = math.fmod(a, b)
    above = b - below
    if below < above:
        rest = below
    elif below > above:
        rest = -above
    else:  # halfway, or not a number
        rest = below - 2.0 * math.fmod(0.5 * (a - below), b)
    return math.copysign(1.0, x) * rest


@implements(math.ulp)
def last_place(x):
    x = abs(float(x))
    if math.isinf(x):
        return x
    above = math.nextafter(x, math.inf)
    return x - math.nextafter(x, 0.0) if math.isinf(above) else above - x


@implements(math.dist)
def distance(p, q):
    return math.hypot(*[a - b for a, b in zip(p, q)])


@implements(int.bit_length)
def bit_length(n):
    """int.bit_length."""
    n, k = abs(n), 0
    while n > 0:
        n, k = n >> 1, k + 1
    return k
