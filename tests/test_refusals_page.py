"""docs/refusals.md: each refusal is made where the program says, in the words of the page, and its
remedy works.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from judge import judge
from refusals import REFUSALS, Refusal

import s2s

PAGE = Path(__file__).parent.parent / "docs" / "refusals.md"
INTRODUCTION = """\
# What s2s refuses

What s2s does not understand it refuses when code is generated, with the line, a caret and what to write instead; it
drops nothing and guesses nothing.  Below is each refusal with a program that meets it, the message, and the program
with the remedy followed.  This page is written from `tests/refusals.py`, and a test holds the two together
(`pytest tests/test_refusals_page.py --update-golden` writes it again).
"""
by_name = {"ids": lambda r: r.program.__name__}


def ask(expression: str | None, f, args: tuple) -> None:
    eval(expression or "s2s.grad(f)(*args)", {"s2s": s2s, "np": np, "f": f, "args": args})


def said_by(refusal: Refusal) -> s2s.S2SError:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(s2s.S2SError) as caught:
            ask(refusal.ask, refusal.program, refusal.args)
    return caught.value


def text_of(program) -> str:
    """The text of a program, without what registers it here."""
    text = textwrap.dedent(inspect.getsource(program))
    text = text[re.search(r"^(async )?def ", text, re.M).start():]
    return text.replace("_followed(", "(")


def call_of(expression: str | None) -> str:
    """What is asked, where it is not the gradient."""
    return f"`{expression.replace('*args', '...')}`:\n\n" if expression else ""


def entry(refusal: Refusal) -> str:
    error = said_by(refusal)
    message = str(error).split("\n", 1)[1]  # without the path
    name = refusal.program.__name__.replace("python_s", "python's").replace("_", " ")
    parts = [f"### {name[0].upper()}{name[1:]}", f"{call_of(refusal.ask)}```python\n"
                                                 f"{text_of(refusal.program).rstrip()}\n```",
             f"```text\n{message}\n```", f"{call_of(refusal.followed_ask)}```python\n"
                                         f"{text_of(refusal.followed).rstrip()}\n```"]
    return "\n\n".join(parts)


def page() -> str:
    parts, last = [INTRODUCTION.rstrip()], ""
    for refusal in REFUSALS:
        if refusal.section != last:
            parts.append(f"## {refusal.section}")
            last = refusal.section
        parts.append(entry(refusal))
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("refusal", REFUSALS, **by_name)
def test_refused_with_line_caret_and_remedy(refusal):
    error = said_by(refusal)
    text, lines = str(error), inspect.getsourcelines(refusal.program)
    assert (
        error.line is not None
        and error.line.source.filename == refusal.program.__code__.co_filename
    )
    first = refusal.program.__code__.co_firstlineno
    assert first <= error.line.number < first + len(lines[0]), "a line of the program"
    assert error.line.text in "".join(lines[0]) and "^" in text
    assert error.remedy and f"Instead: {error.remedy}" in text


@pytest.mark.parametrize("refusal", REFUSALS, **by_name)
def test_the_remedy_works(refusal):
    assert refusal.followed is not None
    if refusal.followed_ask is not None:
        ask(refusal.followed_ask, refusal.followed, refusal.followed_args)
    else:
        judge(refusal.followed, *refusal.followed_args)


@pytest.mark.lengthy
def test_the_page_is_what_is_said(pytestconfig):
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page()


def test_there_are_many():
    assert len(REFUSALS) >= 40
    assert len({r.program.__name__ for r in REFUSALS}) == len(REFUSALS)
    assert np.all([r.section for r in REFUSALS])
