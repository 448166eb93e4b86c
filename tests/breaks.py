"""Calls of the functions that s2s knows, broken: odd objects for arguments, wrong options, too many
or too few arguments.

`broken(seed)` is the text of a program `f(x)` of a vector of three numbers, whose call Python may
refuse as well; `outcome(run)` says what came of running something, and `fault(...)` what is wrong
with s2s's outcome beside Python's: right are the same value, an S2SError that names the line and a
remedy, or an exception of the class that Python raises.
"""

from __future__ import annotations

import linecache
import random
import re
import warnings
from collections.abc import Callable

import numpy as np

import s2s
from s2s.errors import InternalError, S2SError
from s2s.transformed import Transformed

ACCEPTED = "accepted"  # begins what is said of a program that Python refuses and s2s does not

IMPORTS = """import math
import numpy as np
import scipy.integrate, scipy.linalg, scipy.signal, scipy.spatial.distance, scipy.special, scipy.stats
"""

# what takes a vector x (3), a matrix m (3, 3), a symmetric positive definite one s (3, 3), and
# numbers
CALLS = """
np.sum(x)|np.mean(m, axis=0)|np.prod(m, axis=1)|np.std(x, ddof=1)|np.var(m, axis=-1, keepdims=True)|np.max(m, axis=0)|np.argmax(x)
np.cumsum(x)|np.cumprod(m, axis=1)|np.sort(x)|np.argsort(x)|np.median(m, axis=0)|np.quantile(x, 0.3)|np.percentile(x, 30.0)
np.clip(x, -1.0, 1.0)|np.where(x > 0, x, 0.5)|np.maximum(x, 0.0)|np.interp(x, [0.0, 1.0], [2.0, 3.0])|np.histogram(x, bins=3)
np.concatenate([x, x])|np.stack([x, x], axis=1)|np.reshape(m, (9,))|np.transpose(m, (1, 0))|np.moveaxis(m, 0, 1)|np.expand_dims(x, 0)
np.squeeze(m[:1], axis=0)|np.tile(x, 2)|np.repeat(x, 2)|np.roll(x, 1)|np.flip(m, axis=0)|np.pad(x, 1)|np.take(x, [0, 2])|np.diag(x)
np.broadcast_to(x, (2, 3))|np.einsum("ij,j->i", m, x)|np.tensordot(m, x, axes=1)|np.dot(m, x)|np.matmul(m, x)|np.outer(x, x)|np.kron(x, x)
np.trace(m)|np.triu(m, 1)|np.diff(x, n=1)|np.gradient(x)|np.convolve(x, x, mode="same")|np.cross(x, x)|np.linspace(x[0], 2.0, num=4)
np.full((2,), x[0])|np.zeros_like(x)|np.arange(3) * x|np.meshgrid(x, x)|np.split(x, 3)|np.searchsorted([0.0, 1.0], x)|np.fft.fft(x, n=4)
np.fft.rfft(x, axis=0)|np.linalg.norm(x, ord=2)|np.linalg.solve(m, x)|np.linalg.inv(m)|np.linalg.det(m)|np.linalg.cholesky(s)
np.linalg.qr(m, mode="reduced")|np.linalg.svd(m, full_matrices=False)|np.linalg.eigh(s, UPLO="L")|np.linalg.matrix_power(m, 2)
np.linalg.pinv(m)|np.linalg.lstsq(m, x, rcond=None)|np.linalg.cond(m, 1)|np.apply_along_axis(np.sum, 0, m)|np.vectorize(math.sin)(x)
np.array([x[0], 2.0])|np.asarray(x, dtype=float)|x.astype(np.float32)|x.reshape(3, 1)|m.sum(axis=1)|x.copy()|x[0:2]|m[:, 1]|x[[0, 1]]
math.sin(x[0])|math.pow(x[0], 2.0)|math.hypot(x[0], 1.0)|abs(x[0])|max(x)|min(x[0], 2.0)|round(x[0], 2)|sum(x)|sorted(x)|float(x[0])
int(x[0])|len(x)|pow(x[0], 2)|list(zip(x, x))|enumerate(x)|range(3)|x @ m|x ** 2|-x|x / 2|x // 2|x % 2|x & x|x << 1
scipy.special.expit(x)|scipy.special.gamma(x)|scipy.special.polygamma(1, x)|scipy.special.jv(1, x)|scipy.special.logsumexp(x, axis=0)
scipy.special.softmax(m, axis=1)|scipy.special.betainc(1.5, 2.5, x)|scipy.special.xlogy(x, x)|scipy.special.comb(5, 2)|scipy.special.erf(x)
scipy.linalg.solve(s, x, assume_a="pos")|scipy.linalg.cho_solve((scipy.linalg.cholesky(s), False), x)|scipy.linalg.expm(m)
scipy.linalg.solve_triangular(m, x, lower=True)|scipy.linalg.toeplitz(x)|scipy.linalg.block_diag(m, s)|scipy.linalg.qr(m, mode="economic")
scipy.spatial.distance.cdist(m, m, "euclidean")|scipy.spatial.distance.pdist(m, metric="cosine")|scipy.stats.norm.logpdf(x, 0.0, 1.0)
scipy.stats.gamma.logpdf(x, 2.0)|scipy.integrate.trapezoid(x, dx=0.1)|scipy.integrate.simpson(x, dx=0.1)|scipy.signal.convolve(x, x)
""".replace("\n", "|").strip("|").split("|")

ODD = (
    "None",
    "'text'",
    "object()",
    "(lambda v: v)",
    "np.sin",
    "[x, m]",
    "[[1.0], [1.0, 2.0]]",
    "{'a': x}",
    "{1, 2}",
    "2j",
    "2 ** 70",
    "-1",
    "7",
    "1.5",
    "True",
    "np.array(['a', 'b', 'c'])",
    "np.array([None, 1, 2])",
    "np.array([1, 2, 3])",
    "np.zeros(0)",
    "np.zeros((2, 2))",
    "np.array(2.0)",
    "(v for v in x)",
    "float",
    "slice(None)",
    "...",
    "b'xy'",
    "x > 0",
    "np.float32(2)",
    "x + 1j",
    "range(3)",
    "iter(x)",
    "()",
    "[]",
    "x[:, None, None]",
    "math.nan",
    "np.datetime64('2020')",
    "print",
    "x.shape",
    "type(x)",
    "NotImplemented",
)
OPTIONS = (
    "axis=7",
    "axis='0'",
    "axis=(0, 0)",
    "axis=1.0",
    "axis=x",
    "mode='odd'",
    "metric='odd'",
    "assume_a='odd'",
    "dtype='odd'",
    "dtype=object",
    "out=x",
    "keepdims=3",
    "order='Z'",
    "UPLO='X'",
    "nonsense=1",
    "where=x > 0",
    "casting='odd'",
    "axis=None",
    "norm='odd'",
    "kind='odd'",
    "full_matrices=x[0] > 0",
    "ord='odd'",
    "n=-1",
    "bins='odd'",
    "rcond='odd'",
    "method='odd'",
    "indexing='odd'",
    "initial=x",
    "p=-1",
    "ddof='1'",
)
LINES = (
    "import os; os.getcwd()",
    "async_ = [i async for i in x] if False else 0",
    "global G; G = x",
    "y = yield_ = 1; del y",
    "exec('z = 1')",
    "class C: pass",
    "x.flags.writeable = False",
    "setattr(x, 'a', 1)",
    "y = eval('1.0')",
    "with open('/dev/null') as h: pass",
    "y = x.tolist().index(9)",
    "y = globals()['x']",
    "y = locals()",
    "y = x.ctypes",
    "y = f'{x!r:>10}'",
    "y = (yield_ := x)",
    "match x[0]:\n        case 1.0: y = 1\n        case _: y = 2",
    "y = {**{'a': x}, 'b': 1}['c']",
    "y = [1, 2][5]",
    "y = x.nothing",
    "y = undefined_name",
    "y = x()",
    "y = 'a' + x[0]",
    "x[0] = 'text'",
    "x[9] = 1.0",
    "y = x[1.5]",
    "y = x['a']",
    "y = x[None, 5]",
    "a, b = x",
    "y = np.nothing(x)",
    "y = x.sum(nonsense=1)",
    "for v in 5: pass",
    "y = sum(x, 'a')",
    "y = len(3.0)",
    "y = int('7')",
    "y = type(x)(3)",
    "y = isinstance(x, 3)",
    "y = not_there(x)",
    "raise ValueError(x)",
    "assert x[0] > 1e9, 'small'",
    "y = np.random.rand(3)",
    "y = hash(x)",
    "y = x if x else 1",
    "while x[0] < 0: pass",
    "y = [v for v in x if v > 0][0]",
    "y = dict(x)",
    "y = set([x])",
    "y = bytes(3)",
    "y = object() < 3",
    "y = x.real.imag.T.conj()",
)


def broken(seed: int) -> str:
    """The program of a seed."""
    rng = random.Random(seed)
    call, line = rng.choice(CALLS), ""
    kind = rng.choice(("argument", "argument", "option", "missing", "extra", "line"))
    if kind == "line":
        line = rng.choice(LINES)
    else:
        call = BREAKS[kind](call, rng)
    return f"""def f(x):
    m = np.outer(x, x[::-1]) + np.diag(x) + np.eye(3)
    s = m @ m.T + np.eye(3)
    {line or 'pass'}
    return {call}
"""


def _arguments(call: str) -> tuple[str, list[str], str]:
    """A call taken apart: what stands before its arguments, these, and what stands behind."""
    start = call.find("(")
    if start < 0:
        return "", [call], ""
    depth, parts, last = 0, [], start + 1
    for k in range(start, len(call)):
        depth += (call[k] in "([{") - (call[k] in ")]}")
        if depth == 1 and call[k] == "," or depth == 0:
            parts.append(call[last:k].strip())
            last = k + 1
            if depth == 0:
                return call[:start + 1], parts, call[k:]
    return "", [call], ""


def _argument(call: str, rng: random.Random) -> str:
    head, args, tail = _arguments(call)
    k = rng.randrange(len(args))
    name = re.match(r"(\w+=)(?!=)", args[k])
    args[k] = (
        (name[1] if name else "") + rng.choice(ODD)
        if head
        else re.sub(r"\bx\b", rng.choice(ODD), args[k], count=1)
    )
    return head + ", ".join(args) + tail


def _option(call: str, rng: random.Random) -> str:
    head, args, tail = _arguments(call)
    option = rng.choice(OPTIONS)
    kept = [a for a in args if not a.startswith(option.split("=")[0] + "=")]
    return head + ", ".join([*filter(None, kept), option]) + tail if head else call


def _missing(call: str, rng: random.Random) -> str:
    head, args, tail = _arguments(call)
    return head + ", ".join(args[:-1]) + tail if head else call


def _extra(call: str, rng: random.Random) -> str:
    head, args, tail = _arguments(call)
    return (
        head
        + ", ".join(
            [rng.choice(ODD), *args]
            if rng.random() < 0.5
            else [*args[:1], *[rng.choice(ODD)], *args[1:]]
        )
        + tail
        if head
        else call
    )


BREAKS = {"argument": _argument, "option": _option, "missing": _missing, "extra": _extra}


def function_of(text: str, name: str) -> Callable:
    """The function `f` of a program, whose source can be found."""
    whole, filename = f"{IMPORTS}\n\n{text}", f"<broken {name}>"
    linecache.cache[filename] = (len(whole), None, whole.splitlines(True), filename)
    names = {"__name__": f"broken_{name}"}
    exec(compile(whole, filename, "exec"), names)
    return names["f"]


def verdict(seed: int) -> str | None:
    """What is wrong with what s2s makes of the program of a seed, its value and its derivative;
    None if nothing is.
    """
    try:
        f = function_of(broken(seed), str(seed))
    except SyntaxError:
        return None
    x = np.array([0.4, 0.9, 1.3])
    expected = outcome(lambda: f(x.copy()))
    said = fault(outcome(lambda: Transformed("value", f)(x.copy())), expected)
    if said is not None or seed % 4:
        return said
    found = outcome(lambda: s2s.jvp(f, (x.copy(),), (np.ones(3),)))
    return fault(found[0] if isinstance(found, tuple) else found, expected)


def outcome(run: Callable):
    """What `run()` returns, or the exception that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return run()
        except Exception as error:
            return error


def fault(found, expected) -> str | None:
    """What is wrong with the outcome `found` of s2s, where Python's is `expected`; None if nothing
    is.
    """
    if isinstance(found, InternalError):
        return f"a fault of s2s: {found}"
    if isinstance(found, Exception):
        text = str(found)
        if re.search(r" at 0x[0-9a-f]{6}|<function|<gast|gast\.\w+ object|<class '", text) and not (
            isinstance(expected, Exception)
            and re.search(r" at 0x|<function|<class '", str(expected))
        ):
            return f"the text shows an object: {text}"
        if isinstance(found, S2SError):
            if found.line is None:
                return f"no line: {text}"
            return None if found.remedy or isinstance(expected, Exception) else f"no remedy: {text}"
        if isinstance(expected, Exception) and (
            isinstance(found, type(expected)) or isinstance(expected, type(found))
        ):
            return None
        return f"{type(found).__name__} ({text}), where Python's outcome is {expected!r}"
    if isinstance(expected, Exception):
        return f"{ACCEPTED}: {found!r}, where Python raises {expected!r}"
    return None if alike(found, expected) else f"{found!r}, where Python's value is {expected!r}"


def alike(a, b) -> bool:
    """Whether two results are the same numbers in the same containers; what is no number is not
    compared.
    """
    if isinstance(b, (tuple, list)):
        return isinstance(a, (tuple, list)) and len(a) == len(b) and all(map(alike, a, b))
    try:
        x, y = np.asarray(a), np.asarray(b)
        if y.dtype.kind not in "biufc":
            return True
        return x.shape == y.shape and bool(np.allclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True))
    except (TypeError, ValueError):
        return True
