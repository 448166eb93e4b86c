"""Strings that a run picks: characters of sequences, names in lists, keys of dicts."""

import numpy as np
import pytest
from differences import differences

import s2s

P = np.array([0.4, 1.2, 0.3, 0.7])
SEQUENCE = "ACGTTGCA"
MOVES = ["up", "down", "flat", "up"]
SCORES = {("A", "A"): 4.0, ("A", "C"): 0.0, ("A", "G"): 0.5, ("A", "T"): -1.0, ("C", "C"): 9.0,
          ("C", "G"): -3.0, ("C", "T"): -1.5, ("G", "G"): 6.0, ("G", "T"): -2.0, ("T", "T"): 5.0}


def alignment(p, n, a="GATTACA", b="GCATGCU"):
    match, other, gap = p[0], p[1], p[2]
    table = np.zeros((len(a) + 1, len(b) + 1))
    table[:, 0] = gap * np.arange(len(a) + 1)
    table[0, :] = gap * np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            score = match if a[i - 1] == b[j - 1] else -other
            table[i, j] = np.logaddexp(np.logaddexp(table[i - 1, j - 1] + score,
                                                    table[i - 1, j] + gap), table[i, j - 1] + gap)
    return table[-1, -1]


def folding(p, n):
    energy = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            if SEQUENCE[i] == "A" and SEQUENCE[j] in "CG":
                energy += p[0] / (j - i)
            elif SEQUENCE[i] == SEQUENCE[j]:
                energy += p[1] ** 2
            else:
                energy -= p[2] * p[3]
    return energy


def moves(p, n):
    x, last = p[0], "none"
    for k in range(n):
        move = MOVES[k % 4]
        if move == "up" and last != "flat":
            x = x * p[1]
        elif move == "down":
            x = x - p[2]
        else:
            x = np.sin(x) * p[3]
        last = move
    return x + (1.0 if last == "up" else 2.0) * p[1]


def by_index(p, n):
    return sum(p["ACGT".index(SEQUENCE[k])] * (k + 1) ** 2 for k in range(n))


def by_code(p, n):
    x = 0.0
    for k in range(n):
        letter = SEQUENCE[-1 - k]
        x = 0.5 * x + p[0] * ("AC".count(letter.upper()) + letter.startswith("T")) ** 2
        if letter.lower() == "g":
            x += np.cos(p[1])
    return x


def by_key(p, n):
    weights = {"A": p[0], "C": p[1], "G": p[2], "T": p[3]}
    x = 0.0
    for k in range(n):
        x = 0.5 * x + weights[SEQUENCE[k]] ** 2
        weights[SEQUENCE[k]] *= 0.9
    return x + weights["A"] * weights["T"]


def by_pair(p, n):
    x = 0.0
    for k in range(n):
        a, b = SEQUENCE[k], SEQUENCE[-1 - k]
        if a > b:
            a, b = b, a
        x += np.tanh(SCORES[a, b] * p[k % 4])
    return x


def by_array(p, n):
    parts = {"up": p * 2.0, "down": np.sin(p), "flat": p[::-1].copy()}
    for k in range(n):
        parts[MOVES[k % 4]][k % 3] *= 1.5
        parts["up" if k % 2 else "down"] += 0.1 * parts[MOVES[k % 3]]
    return parts["up"] @ parts["down"] + np.sum(parts["flat"])


def of_there(p, n):
    known = {"up": p[0], "flat": p[1]}
    return sum(known[MOVES[k]] if MOVES[k] in known else p[2] for k in range(n))


def or_else(p, n):
    weights = {"A": p[0], "C": p[1]}
    codes = [ord(letter) - 65 for letter in SEQUENCE]
    return sum(weights.get(SEQUENCE[k], 0.5) * p[codes[k] % 4] for k in range(n))


def by_message(p, n):
    total = 0.0
    for k in range(n):
        try:
            if k % 3 == 1:
                raise ValueError(f"{SEQUENCE[k]} is left out")
            if k % 3 == 2:
                raise ValueError("too large")
            total += p[0] * k
        except ValueError as error:
            total += p[1] if "left" in str(error) else p[2] * len(error.args)
    return total


def by_part(p, n):
    return sum(p[k % 4] for k in range(n) if "o" in MOVES[k % 4] and MOVES[k % 4] in "updown")


def by_made_key(p, n):
    table = {"A-up": p[0], "A-down": p[1] * p[2], "C-up": p[3]}
    total = 0.0
    for k in range(n):
        key = SEQUENCE[k] + "-" + MOVES[k % 3]
        total += table.get(key, 0.5) * k
        if key == "A-down" or f"{key}s".endswith("flats"):
            total *= p[3]
    return total


def best_path(p, n):
    """The most likely states of a hidden Markov model, traced back through dicts of words."""
    trans = {"ok": {"ok": p[0], "ill": 1 - p[0]}, "ill": {"ok": p[2], "ill": 1 - p[2]}}
    emit = {"ok": {"n": 0.5, "c": 0.4, "d": 0.1}, "ill": {"n": 0.1, "c": 0.3, "d": 0.6}}
    scores, back = {"ok": np.log(0.6 * p[3]), "ill": np.log(0.4)}, []
    for seen in "cdnd"[:n]:
        row, pointers = {}, {}
        for s in trans:
            row[s], pointers[s] = max((scores[r] + np.log(trans[r][s] * emit[s][seen]), r)
                                      for r in trans)
        scores = row
        back.append(pointers)
    path = [max(scores, key=scores.get)]
    for pointers in reversed(back):
        path.append(pointers[path[-1]])
    return scores[path[0]] + path.count("ill") * p[0] + ("ok" in path) * p[1]


PROGRAMS = [best_path, by_message, by_part, by_made_key, or_else, alignment, folding, moves,
            by_index, by_code, by_key, by_pair, by_array]


@pytest.mark.parametrize("n", [0, 1, 6])
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_are_those_of_differences(f, n):
    value, slope = s2s.value_and_grad(f)(P.copy(), n)
    np.testing.assert_allclose(value, f(P.copy(), n), rtol=1e-14)
    expected = differences(f, P, n)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(s2s.jacfwd(f)(P.copy(), n), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_derivatives_are_those_of_differences(f):
    gradient = s2s.jit(s2s.grad(f))
    for n in (0, 6):
        np.testing.assert_allclose(gradient(P.copy(), n), differences(f, P, n), rtol=1e-6,
                                   atol=1e-8)


def test_a_place_behind_the_end_raises():
    def f(p, n):
        return p[0] if SEQUENCE[n] == "A" else p[1]

    assert s2s.value_and_grad(f)(P, -1)[0] == P[0]
    with pytest.raises(IndexError):
        s2s.grad(f)(P, len(SEQUENCE))


def test_a_key_that_is_not_there_raises():
    def f(p, n):
        known = {"A": p[0], "C": p[1]}
        return sum(known[SEQUENCE[k]] for k in range(n))

    np.testing.assert_array_equal(s2s.grad(f)(P, 2), [1, 1, 0, 0])
    with pytest.raises(KeyError):
        s2s.grad(f)(P, 3)


def test_a_handler_catches_a_place_behind_the_end():
    def f(p, n):
        try:
            letter = SEQUENCE[n]
        except IndexError:
            return p[3] ** 2
        return p[0] if letter == "A" else p[1]

    for n in (0, 1, 8):
        np.testing.assert_allclose(s2s.grad(f)(P, n), differences(f, P, n), atol=1e-8)


def test_words_with_no_number_in_common_are_compared():
    def f(p, n):
        s = 0.0
        for k in range(n):
            s = s * p[0] + (p[1] if SEQUENCE[k] == "xyzTGzyx"[k] else p[2])
        return s

    np.testing.assert_allclose(s2s.grad(f)(P, 8), differences(f, P, 8), rtol=1e-6, atol=1e-8)


def bound_in_one_branch(p, n):
    if n > 0:
        mode = "B"
    return p[0] if n > 0 and mode == "B" else 2 * p[1]


def why_it_ended(p, n):
    x, k = p[0], 0
    while True:
        if k == n:
            why = "done"
            break
        if x < 0.1:
            why = "small"
            break
        x, k = np.sin(x) * p[1], k + 1
    return x if why == "done" else 2 * x + p[2]


def one_before(p, n):
    x = p[0]
    for k in range(n):
        if k > 0 and last == "A":  # noqa: F821
            x = x * x + p[1]
        last = SEQUENCE[k]  # noqa: F841
    return x


@pytest.mark.parametrize("n", [0, 1, 3, 30])
@pytest.mark.parametrize("f", [bound_in_one_branch, why_it_ended, one_before])
def test_words_bound_on_some_paths(f, n):
    n = min(n, len(SEQUENCE))
    np.testing.assert_allclose(s2s.grad(f)(P, n), differences(f, P, n), rtol=1e-6, atol=1e-8)


def test_a_word_that_no_trip_has_bound_raises():
    def f(p, n):
        for k in range(n):
            last = SEQUENCE[k]
        return p[0] if last == "A" else p[1]

    np.testing.assert_array_equal(s2s.grad(f)(P, 1), [1, 0, 0, 0])
    with pytest.raises(UnboundLocalError):
        s2s.grad(f)(P, 0)


def among(p):
    word = "a" if p[0] > 0 else "b"
    path = ["zz", word]
    path.append("b" if p[1] > 0 else "c")
    alone = [max({"a": p[0], "b": p[1]}.items(), key=lambda item: item[1])[0]]
    told = [("a" in path) + 2 * ("c" in path) + 4 * (word in ["a", "c"]) + 8 * ("b" in alone),
            path.count("b"), 2 * (word == path[1]), 4 * (word in path), 8 * ("d" in [word, None])]
    return p[2] * sum(told) + p[3]


def test_words_are_found_in_lists_of_words():
    for p in (P, -P):
        value, slope = s2s.value_and_grad(among)(p)
        assert value == among(p)
        np.testing.assert_allclose(slope, differences(among, p), rtol=1e-6, atol=1e-8)
