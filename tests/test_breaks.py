"""Broken calls: what is said of them has the program's line and a remedy, and shows nothing of s2s
(tools/fuzz --refusals tries more).
"""

import breaks
import numpy as np
import pytest

import s2s
from s2s.errors import S2SError, TypeMismatchError

X = np.array([0.4, 0.9, 1.3])


@pytest.mark.lengthy
@pytest.mark.parametrize("first", range(0, 200, 40))
def test_what_is_said_of_broken_calls(first):
    for seed in range(first, first + 40):
        said = breaks.verdict(seed)
        assert (
            said is None
            or said.startswith(breaks.ACCEPTED)
            or "2 ** 70" in breaks.broken(seed)
            or "{1, 2}" in breaks.broken(seed)
        ), f"{breaks.broken(seed)}\n{said}"


def test_the_oracle_sees_faults():
    """It would say so of an internal error, an address, a syntax tree, a missing line or remedy,
    and another exception.
    """
    line = pytest.raises(S2SError, lambda: s2s.grad(lambda x: np.sum(np.nothing(x)))(X)).value.line
    for found in (
        KeyError("here"),
        TypeError("<function f at 0x7f8301ec6980>"),
        S2SError("no line", None, "do"),
        S2SError("no remedy", line),
        np.ones(2),
        s2s.errors.InternalError("odd", line, "do"),
    ):
        assert breaks.fault(found, 1.0) is not None
    assert breaks.fault(S2SError("refused", line, "do"), 1.0) is None
    assert breaks.fault(ValueError("odd"), ValueError("other")) is None
    assert breaks.fault(1.0, ValueError("odd")).startswith(breaks.ACCEPTED)


@pytest.mark.parametrize(
    "f, error, text",
    [
        (
            lambda x: len(3.0) * x[0],
            TypeError,
            r"len called like this: object of type 'float' has no len\(\)",
        ),
        (
            lambda x: sorted(1.5)[0] * x[0],
            TypeError,
            "sorted called like this: 'float' object is not iterable",
        ),
        (lambda x: x[0] * isinstance(x, 3), TypeError, "isinstance called like this"),
        (lambda x: np.sum(np.squeeze(x, axis=np.nan)), TypeMismatchError, "axis=nan"),
        (lambda x: max(x[0]), TypeError, "max of one number"),
        (
            lambda x: np.sum(np.tensordot(np.outer(x, x), x)),
            TypeMismatchError,
            "np.tensordot along 2 axes of arrays of 2 and 1",
        ),
        (
            lambda x: np.sum(np.linalg.solve(np.outer(x, x), 2.0)),
            TypeMismatchError,
            "np.linalg.solve with a number on the right",
        ),
        (
            lambda x: x[0] - "text",
            TypeMismatchError,
            "is static text, and a number or an array is needed",
        ),
    ],
)
def test_calls_that_python_refuses_are_refused_at_their_line(f, error, text):
    with pytest.raises(error, match=text) as caught:
        s2s.grad(f)(X)
    assert (
        isinstance(caught.value, S2SError) and caught.value.line is not None and caught.value.remedy
    )
