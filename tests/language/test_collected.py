"""Dicts, sets, deques and counters whose keys and members are known at run time, or follow from a
known range.
"""

# ruff: noqa: B023, C420, E701, E702

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

RNG = np.random.default_rng(0)
X = np.array([0.3, 0.9, 0.4, 1.2, 0.1])
LABELS = np.array([0, 1, 0, 2, 1])
ROWS = RNG.uniform(size=(4, 2))
EMISSIONS, TRANSITIONS = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3))
PARAMS = [
    {"W": RNG.normal(size=(3, 5)), "b": RNG.normal(size=3)},
    {"W": RNG.normal(size=(2, 3)), "b": RNG.normal(size=2)},
]


def keys_of_a_known_range(x):
    d = {}
    for k in range(3):
        d[k] = x[k] * k
    return d[0] + d[1] * d[2]


def keys_made_of_numbers(x):
    d = {}
    for i in range(4):
        d[f"w{i}"] = np.sin(x[i]) * i
    s = 0.0
    for i in range(4):
        s = s + d[f"w{i}"] ** 2
    return s


def choices_in_comprehensions(x, n):
    """The variable of a comprehension is read after a choice at run time inside it."""
    by_key = {k: np.sin(x[k] if n > k else x[0]) * k for k in range(3)}
    rows = [[(x[k] if x[j] > 0 else np.exp(x[k])) * k + j for j in range(2)] for k in range(3)]
    return (
        sum(by_key.values())
        + sum((x[1] if n > 1 else 2.0 * x[1]) + k for k in range(3))
        + rows[2][1] * rows[1][0]
    )


def keys_in_a_comprehension(x):
    params = {f"W{i}": x * i for i in range(3)}
    h = x
    for i in range(3):
        h = np.tanh(h * params[f"W{i}"])
        h = h + params["W" + str(i)]
    return np.sum(h)


def table_by_number(x, n):
    d = {0: x[0], 1: x[1]}
    for i in range(2, n):
        d[i] = d[i-1] * 0.5 + d[i-2]
    return d[n - 1]


def member_of_a_known_set(x):
    chosen = {1, 3}
    s = 0.0
    for i in range(len(x)):
        if i in chosen:
            s += x[i] ** 2
    return s


def seen_before(x):
    seen = set()
    s = 0.0
    for i in range(len(x)):
        j = (i * i) % 5
        if j not in seen:
            seen.add(j)
            s += x[j] ** 2
    return s


def set_comprehension(x):
    idx = {i % 3 for i in range(5)}
    return sum(x[i] for i in idx) * x[0]


def columns_of_a_comprehension(x):
    pairs = [(v, v * v) for v in x]
    a, b = zip(*pairs)
    return sum(a) * sum(b)


def columns_of_a_list(x):
    pairs = []
    for v in x:
        pairs.append((v, v * v))
    a, b = zip(*pairs)
    return sum(a) * b[0]


def queue_of_two(x):
    q = deque()
    s = 0.0
    for v in x:
        q.append(v)
        if len(q) > 2:
            s += q.popleft() * v
    return s


def window(x):
    q = deque(maxlen=3)
    s = 0.0
    for v in x:
        q.append(v)
        s += sum(q) ** 2
    return s


def window_that_starts_full(x):
    q = deque([0.0] * 3, maxlen=3)
    s = 0.0
    for v in x:
        q.append(v)
        s += q[0] * q[-1] + v
    return s


def counted_by_parity(x):
    c = Counter()
    for i in range(len(x)):
        c[i % 2] += 1
    return x[0] * c[0] + c[1] * x[1] ** 2


def totals_by_key(x):
    d = defaultdict(float)
    for i, v in enumerate(x):
        d[i % 3] += v * v
    return d[0] * d[1] + d[2]


def groups_by_label(x, labels):
    d = defaultdict(list)
    for label, v in zip(labels, x):
        d[label].append(v)
    s = 0.0
    for k in d:
        s += sum(d[k]) ** 2
    return s


def functions_by_index(x, ks):
    fs = [lambda v: v * v, lambda v: np.sin(v), lambda v: v + 1.0]
    s = 0.0
    for k in range(len(x)):
        s += fs[ks[k]](x[k])
    return s


def repeated_pair(x, n):
    beams = [(1.0, x[0])] * n
    s = 0.0
    for a, b in beams:
        s += a * b * b
    return s


def count_and_index_of_a_tuple(x):
    t = (1, 2, 1, 3)
    return x[0] * t.count(1) + x[t.index(3)] ** 2


def same_list(x):
    a = [x[0]]
    b = a
    if a is b:
        return x[0] ** 2
    return x[1]


def other_list(x):
    a = [x[0]]
    b = [x[0]]
    return x[1] ** 2 if a is not b else x[0]


def set_operators(x):
    a = set([1, 2, 3])
    b = {2, 3, 4}
    s = 0.0
    for i in sorted(a & b):
        s += x[i] ** 2
    return s * len(a | b)


def sorted_set(x, labels):
    u = set(labels)
    s = 0.0
    for k in sorted(u):
        s += x[k] ** 2
    return s


def depth_first(x):
    adj = {0: [1, 2], 1: [3], 2: [3, 4], 3: [], 4: []}
    seen = set()
    stack = [0]
    s = 0.0
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        s = s * 0.9 + x[n] ** 2
        for m in adj[n]:
            stack.append(m)
    return s


def cached_by_key(x):
    cache = {}
    s = 0.0
    for i in range(len(x)):
        key = i % 2
        if key not in cache:
            cache[key] = np.exp(x[i])
        s += cache[key] * x[i]
    return s


def functions_by_name(x):
    ops = {"mul": lambda a, b: a * b, "add": lambda a, b: a + b}
    s = x[0]
    for name in ["mul", "add", "mul"]:
        s = ops[name](s, x[1])
    return s


def starred_zip(x):
    xs = []
    for v in x:
        xs.append(v * v)
    h, *i = zip(xs, xs)
    return h[0] + i[1][0]


def sorted_queue(x):
    q = []
    for i, v in enumerate(x):
        q.append((v, i))
    q.sort(key=lambda e: e[0])
    s = 0.0
    while q:
        d, i = q.pop(0)
        s = s * 0.9 + d * x[i]
        if d < 0.35 and len(q) < 8:
            q.append((d * 2, i))
            q.sort(key=lambda e: e[0])
    return s


def viterbi(e, tr):
    n, k = e.shape
    score = e[0].copy()
    back = []
    for t in range(1, n):
        new = np.zeros(k)
        ptr = []
        for j in range(k):
            best = None
            arg = 0
            for i in range(k):
                s = score[i] + tr[i, j]
                if best is None or s > best:
                    best, arg = s, i
            new[j] = best + e[t, j]
            ptr.append(arg)
        back.append(ptr)
        score = new
    state = int(np.argmax(score))
    path = [state]
    for ptr in reversed(back):
        state = ptr[state]
        path.append(state)
    path.reverse()
    total = e[0, path[0]]
    for t in range(1, n):
        total += tr[path[t-1], path[t]] + e[t, path[t]]
    return total


def tree_of_dicts(x, q):
    def pred(node, q):
        if "v" in node:
            return node["v"]
        if q[node["f"]] < node["t"]:
            return pred(node["l"], q)
        return pred(node["r"], q)

    t = {
        "f": 0,
        "t": 0.5,
        "l": {"v": x[0]},
        "r": {"f": 1, "t": 1.0, "l": {"v": x[1]}, "r": {"v": x[2]}},
    }
    return sum(pred(t, row) ** 2 for row in q)


def adaptive_integrator(x):
    ts, ys = [0.0], [x[0]]
    h = 0.1
    while ts[-1] < 1.0:
        t, y = ts[-1], ys[-1]
        k1 = -x[1] * y
        k2 = -x[1] * (y + h * k1)
        err = abs(h * (k2 - k1) / 2)
        if err < 1e-2:
            ts.append(t + h)
            ys.append(y + h * (k1 + k2) / 2)
            h = min(h * 1.5, 1.0 - ts[-1] + 1e-12) if ts[-1] < 1 else h
        else:
            h = h / 2
    return np.sum(np.array(ys)) + ys[-1] ** 2


def event_queue(x):
    q = deque([(x[0], 0)])
    s = 0.0
    n = 0
    while q and n < 10:
        t, kind = q.popleft()
        n += 1
        if kind == 0:
            q.append((t + x[1], 1))
            s += t * t
        else:
            if t < 3:
                q.append((t * 1.5, 0))
            s += t * x[2]
    return s


def layers(params, x):
    h = x
    for i, p in enumerate(params):
        h = p["W"] @ h + p["b"]
        if i < len(params) - 1:
            h = np.tanh(h)
    return np.sum(h ** 2)


def history(x):
    hist = {"loss": [], "grad": []}
    p = x[0]
    for k in range(4):
        g = 2 * p + np.cos(p)
        p = p - 0.1 * g
        hist["loss"].append(p * p)
        hist["grad"].append(g)
    return hist["loss"][-1] + sum(hist["grad"])


def counted_labels(x, lab):
    c = Counter(lab)
    return sum(x[i] * c[i] for i in range(3))


def table_of_results(x, n):
    table = {}
    table[0] = x[0]
    table[1] = x[1]
    for i in range(2, n + 1):
        table[i] = np.sin(table[i - 1]) + table[i - 2] * x[2]
    return table[n]


def cheapest_path(x, n):
    cost = {}
    for i in range(n):
        for j in range(n):
            if i == 0 and j == 0:
                cost[i, j] = x[0]
            elif i == 0:
                cost[i, j] = cost[i, j - 1] * x[1] + 1
            elif j == 0:
                cost[i, j] = cost[i - 1, j] * x[2]
            else:
                cost[i, j] = min(cost[i - 1, j], cost[i, j - 1]) + x[3]
    return cost[n - 1, n - 1]


def particles(y, x0):
    ps = [(x0[k], 0.25) for k in range(4)]
    ll = 0.0
    for v in y:
        new = []
        tot = 0.0
        for p, w in ps:
            q = 0.9 * p
            w2 = w * math.exp(-0.5 * (v - q) ** 2)
            tot += w2
            new.append((q, w2))
        ll += math.log(tot)
        ps = [(p, w / tot) for p, w in new]
    return ll + sum(p * w for p, w in ps)


def stack_machine(x):
    prog = ["push0", "push1", "mul", "push2", "add", "sin"]
    st = []
    for op in prog:
        if op.startswith("push"):
            st.append(x[int(op[4:])])
        elif op == "sin":
            st.append(math.sin(st.pop()))
        else:
            b = st.pop()
            a = st.pop()
            st.append(a * b if op == "mul" else a + b)
    return st[-1]


def cache_and_window(x):
    cache = {}
    order = deque(maxlen=2)
    s = 0.0
    for i in range(len(x)):
        k = i % 3
        if k in cache:
            s += cache[k] * x[i]
        else:
            cache[k] = x[i] ** 2
        order.append(x[i])
    return s + order[0]


def indices_and_values(x):
    xs = [(i, x[i]) for i in range(len(x))]
    idx, vals = zip(*xs)
    return sum(v * i for i, v in zip(idx, vals)) * max(vals)


def pair_with_a_list(x):
    best = (0.0, [])
    for v in x:
        if v > best[0]:
            best = (v, best[1] + [v])
    return best[0] * sum(best[1])


def rows_of_unequal_length(x):
    rows = []
    for i in range(3):
        row = []
        for j in range(i + 1):
            row.append(x[j] * i)
        rows.append(row)
    s = 0.0
    for row in rows:
        for v in row:
            s += v * v
    rows[2][1] = 5.0
    return s + rows[2][1] * rows[1][0]


def beam_search(emissions, transitions, width):
    beams = [([k], emissions[0, k]) for k in range(3)]
    for t in range(1, len(emissions)):
        candidates = []
        for path, score in beams:
            for k in range(3):
                candidates.append((path + [k], score + transitions[path[-1], k] + emissions[t, k]))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = candidates[:width]
    best_path, best_score = beams[0]
    return best_score + 0.1 * len(best_path)


def dict_out_of_a_list(x):
    out = []
    for i in range(len(x)):
        out.append({"v": x[i] * i})
    return out[1]["v"] ** 2


@dataclass
class Pair:
    a: float
    b: float


def objects_in_a_list(x):
    out = []
    for v in x:
        out.append(Pair(v, v * 2))
    s = 0.0
    for p in out:
        s += p.a * p.b
    return s


def means_by_label(x, lab):
    d = defaultdict(list)
    for i in range(len(x)):
        d[lab[i]].append(x[i])
    s = 0.0
    for k, vs in d.items():
        m = sum(vs) / len(vs)
        s += (k + 1) * m ** 2
    return s


def shortest_paths(w):
    n = len(w)
    dist = [1e9] * n
    dist[0] = 0.0
    visited = set()
    while len(visited) < n:
        u = None
        for i in range(n):
            if i not in visited and (u is None or dist[i] < dist[u]):
                u = i
        visited.add(u)
        for v in range(n):
            if w[u, v] > 0:
                d = dist[u] + w[u, v]
                if d < dist[v]:
                    dist[v] = d
    return sum(dist[1:])


def set_in_a_branch(x):
    s = set()
    if x[0] > .2:
        s.add(1)
    else:
        s.add(2)
    return x[1] ** 2 if 1 in s else x[2]


def dict_in_a_branch(x, k):
    d = {}
    if x[0] > .2:
        d[k] = x[1] ** 2
    else:
        d[k] = x[2]
    return d[k] * x[0]


def dict_by_two_names(x, n):
    d = {}
    e = d
    for i in range(n):
        e[i] = x[i] * 2
    return d[0] * e[n - 1]


def dict_written_by_a_function(x, n):
    def put(d, k, v):
        d[k] = v
    d = {}
    for i in range(n):
        put(d, i, x[i] ** 2)
    return sum(d.values())


def copies_of_sets(x):
    a = {1, 2}
    b = a.copy()
    b.add(3)
    return x[0] ** len(a) + x[1] * len(b)


def table_with_a_run_time_key(x, ks):
    table = {0: 1.0, 1: 2.0, 2: 3.0}
    s = 0.0
    for i in range(len(x)):
        s += table[ks[i]] * x[i] ** 2
    return s


def get_or_none(x, n):
    d = {}
    for i in range(n):
        v = d.get(i - 1)
        if v is None:
            v = 1.0
        d[i] = v * x[i]
    return d[n - 1]


def get_with_a_default(x, ks):
    d = {}
    for i in range(len(x)):
        d[ks[i]] = d.get(ks[i], 0.0) + x[i] ** 2
    return d[0] * d[1]


def popped_key(x, n):
    d = {}
    for i in range(n):
        d[i] = x[i]
    a = d.pop(1)
    return a * len(d) + sum(d.values()) ** 2


def both_ends_of_a_deque(x):
    q = deque([x[0], x[1]])
    q.appendleft(x[2])
    q.extend([x[3]])
    q.rotate(1)
    return q[0] * q[1] + q[-1] * q[2] ** 2


def deque_that_a_function_returns(x):
    def f(n):
        q = deque(maxlen=2)
        for i in range(n):
            q.append(x[i])
        return q
    return sum(f(4)) ** 2


def set_of_pairs(x, n):
    vis = set()
    s = 0.0
    for i in range(n):
        for j in range(n):
            p = (min(i, j), max(i, j))
            if p not in vis:
                vis.add(p)
                s += x[p[0]] * x[p[1]]
    return s


def set_of_rounded_numbers(x):
    seen = set()
    s = 0.0
    for v in x:
        r = round(v * 2)
        if r in seen:
            continue
        seen.add(r)
        s += v * v
    return s


def tuple_of_functions(x, k):
    fs = (np.sin, np.cos, np.tanh)
    return np.sum(fs[k](x)) + fs[-1](x[0])


PROGRAMS = [
    (keys_of_a_known_range, X),
    (keys_made_of_numbers, X),
    (keys_in_a_comprehension, X),
    (choices_in_comprehensions, X, 2),
    (table_by_number, X, 5),
    (member_of_a_known_set, X),
    (seen_before, X),
    (set_comprehension, X),
    (columns_of_a_comprehension, X),
    (columns_of_a_list, X),
    (queue_of_two, X),
    (window, X),
    (window_that_starts_full, X),
    (counted_by_parity, X),
    (totals_by_key, X),
    (groups_by_label, X, LABELS),
    (functions_by_index, X, LABELS),
    (repeated_pair, X, 3),
    (count_and_index_of_a_tuple, X),
    (same_list, X),
    (other_list, X),
    (set_operators, X),
    (sorted_set, X, LABELS),
    (depth_first, X),
    (cached_by_key, X),
    (functions_by_name, X),
    (starred_zip, X),
    (sorted_queue, X),
    (viterbi, EMISSIONS, TRANSITIONS),
    (tree_of_dicts, X, ROWS),
    (adaptive_integrator, X),
    (event_queue, X),
    (layers, PARAMS, X),
    (history, X),
    (counted_labels, X, LABELS),
    (table_of_results, X, 5),
    (cheapest_path, X, 3),
    (particles, X, X[:4]),
    (stack_machine, X),
    (cache_and_window, X),
    (indices_and_values, X),
    (pair_with_a_list, X),
    (rows_of_unequal_length, X),
    (beam_search, EMISSIONS, TRANSITIONS, 2),
    (dict_out_of_a_list, X),
    (objects_in_a_list, X),
    (means_by_label, X, LABELS),
    (shortest_paths, np.abs(TRANSITIONS)),
    (set_in_a_branch, X),
    (dict_in_a_branch, X, 2),
    (dict_by_two_names, X, 3),
    (dict_written_by_a_function, X, 3),
    (copies_of_sets, X),
    (table_with_a_run_time_key, X, LABELS),
    (get_or_none, X, 4),
    (get_with_a_default, X, LABELS),
    (popped_key, X, 4),
    (both_ends_of_a_deque, X),
    (deque_that_a_function_returns, X),
    (set_of_pairs, X, 3),
    (set_of_rounded_numbers, X),
    (tuple_of_functions, X, 1),
]


def floats(args):
    return tuple(
        k
        for k, x in enumerate(args)
        if isinstance(x, list) or isinstance(x, np.ndarray) and x.dtype == float
    )


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, args", [(f, args) for f, *args in PROGRAMS], ids=lambda p: getattr(p, "__name__", "")
)
def test_keyed_by_run_time_data(f, args):
    judge(f, *args, wrt=floats(args))


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args",
    [
        (f, args)
        for f, *args in PROGRAMS
        if f
        in (
            depth_first,
            groups_by_label,
            functions_by_index,
            window,
            columns_of_a_list,
            cheapest_path,
            event_queue,
            set_of_pairs,
        )
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_keyed_by_run_time_data_compiled(f, args):
    judge(f, *args, wrt=floats(args), compiled=True)


def places_in_a_set(x):
    walls, here = {(1, 1)}, (0, 0)
    for k in range(3):
        there = (here[0] + k % 2, 1 + int(x[k] > 0.5))
        here = here if there in walls else there
        x = x * (2.0 + here[0] + 3 * here[1])
    return np.sum(x)


def test_a_set_of_tuples_is_printed_as_one():
    judge(places_in_a_set, X)


EDGES = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "d")]


def neighbours_by_name(x):
    around = defaultdict(set)
    for a, b in EDGES:
        around[a].add(b)
        around[b].add(a)
    flow = {name: x[k] for k, name in enumerate(sorted(around))}
    return sum(v * sum(flow[other] for other in sorted(around[name])) for name, v in flow.items())


def test_sets_of_words_that_a_defaultdict_makes():
    judge(neighbours_by_name, X)


def missing_key(x):
    d = {}
    for i in range(len(x)):
        d[i] = x[i]
    return d[len(x)]


def index_outside(x):
    return [np.sin, np.cos][len(x)](x[0])


@pytest.mark.parametrize("f, error", [(missing_key, KeyError), (index_outside, IndexError)])
def test_what_python_raises(f, error):
    with pytest.raises(error) as plain:
        f(X)
    with pytest.raises(error) as caught:
        s2s.grad(f)(X)
    assert caught.value.args == plain.value.args


def loops_over_a_set(x, labels):
    return sum(x[k] for k in set(labels))


def returns_a_set(x, labels):
    return {1, 2}, x


def key_made_of_run_time_numbers(x, n):
    d = {}
    for i in range(n):
        d[f"w{i}"] = x[i]
    return d["w0"]


@pytest.mark.parametrize(
    "f, message, remedy",
    [
        (
            loops_over_a_set,
            "the order of a set that is not known when code is generated",
            "sorted(...)",
        ),
        (returns_a_set, "a set is an operand, or is returned", "sorted(s)"),
        (key_made_of_run_time_numbers, "a key that depends on run-time data", "use integers"),
    ],
)
def test_what_is_refused(f, message, remedy):
    with pytest.raises(S2SError) as caught:
        s2s.vjp(f, X, 3 if f is key_made_of_run_time_numbers else LABELS)
    assert message in str(caught.value) and remedy in str(caught.value) and "^" in str(caught.value)
