"""Warnings and messages for loggers are said once, where the program runs forwards: in Python,
compiled, and in the text.
"""

import logging
import warnings

import numpy as np
import pytest

import s2s

logger = logging.getLogger("s2s.tests.told")


def root(a, n):
    x = 1.0
    for k in range(n):
        x = 0.5 * (x + a / x)
        logger.info("step %d: %.3f", k, x)
    if abs(x * x - a) > 1e-6:
        warnings.warn(f"{x * x - a:.1e} after {n}", RuntimeWarning, stacklevel=2)
        logging.warning(f"{x:.2f}")
    else:
        warnings.warn("done", stacklevel=2)
    return x


@pytest.mark.parametrize(
    "form", ["interpreted", "text", pytest.param("compiled", marks=pytest.mark.compile)]
)
def test_what_is_said_is_what_the_program_says(form, caplog):
    gradient = s2s.grad(root)
    if form == "text":
        namespace = {}
        exec(gradient.source, namespace)
        gradient = namespace["root_grad"]
    elif form == "compiled":
        gradient = s2s.jit(gradient)
    caplog.set_level(logging.INFO)
    for n in (2, 9):
        said = []
        for f in (root, gradient):
            caplog.clear()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = f(2.0, n)
            # the rest is Numba's, about its compiling
            said.append(
                (
                    [
                        (w.category, str(w.message))
                        for w in caught
                        if w.category in (UserWarning, RuntimeWarning)
                    ],
                    [(r.name, r.levelname, r.getMessage()) for r in caplog.records],
                )
            )
        assert said[0] == said[1] and len(said[0][0]) == 1 and len(said[0][1]) == n + (n == 2)
    np.testing.assert_allclose(found, 0.5 / np.sqrt(2.0))


def test_a_warning_that_is_an_error_is_raised():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="after 2"):
            s2s.grad(root)(2.0, 2)


class Own(UserWarning):
    pass


@pytest.mark.parametrize(
    "f, message",
    [
        (
            lambda x: warnings.warn("x", Own, stacklevel=2) or x,
            "a warning of a class of the program's own",
        ),
        (lambda x: logger.info("x", exc_info=True) or x, "with the argument exc_info"),
    ],
)
def test_refusals(f, message):
    with pytest.raises(s2s.UnsupportedError, match=message):
        s2s.grad(f)(1.0)


class Solver:
    def __init__(self):
        self.log = logging.getLogger("s2s.tests.solver")

    def step(self, x):
        self.log.warning("at %.2f", x, extra={"k": 1})
        return x * x


def told_by_loggers_made_inside(x):
    log = logging.getLogger(__name__)
    if log.isEnabledFor(logging.INFO):
        log.info("starts")
    logging.getLogger().error("root")
    try:
        if x > 0.5:
            raise ValueError("too large")
    except ValueError:
        log.error("caught", exc_info=False)
    return Solver().step(x)


def test_loggers_made_inside_say_what_they_say(caplog):
    gradient = s2s.grad(told_by_loggers_made_inside)
    for level in (logging.INFO, logging.WARNING, logging.INFO):
        caplog.set_level(level)
        said = []
        for f in (told_by_loggers_made_inside, gradient):
            caplog.clear()
            f(0.7)
            said.append([(r.name, r.levelname, r.getMessage()) for r in caplog.records])
        assert said[0] == said[1] and len(said[0]) == 3 + (level == logging.INFO)


def test_a_traceback_is_not_logged():
    def f(x):
        logger.exception("failed")
        return x

    with pytest.raises(s2s.UnsupportedError, match="a traceback in a message") as caught:
        s2s.grad(f)(1.0)
    assert "logger.error" in str(caught.value) and "^" in str(caught.value)
