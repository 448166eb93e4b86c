"""Generating code takes turns, and leaves the process as it was."""

import gc
import threading

import pytest

import s2s
from s2s.ir.turns import YOUNG, made_in_turn, taking_turns


@pytest.fixture
def threshold():
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield (701, 11, 12)
    gc.set_threshold(*before)


def test_the_collector_looks_less_often_while_code_is_generated(threshold):
    s2s.grad(lambda x: x * x)(0.3)
    assert gc.get_threshold() == threshold
    with taking_turns():
        with taking_turns():
            assert gc.get_threshold() == (YOUNG, 11, 12)
        assert gc.get_threshold() == (YOUNG, 11, 12)
    assert gc.get_threshold() == threshold


def test_also_after_an_error(threshold):
    def opened(x):
        with open("x"):
            return x

    with pytest.raises(s2s.S2SError):
        s2s.grad(opened)(0.3)
    assert gc.get_threshold() == threshold


def test_what_the_program_says_of_the_collector_counts(threshold):
    gc.set_threshold(0)
    with taking_turns():
        assert gc.get_threshold()[0] == 0
    gc.set_threshold(10 * YOUNG, 11, 12)
    with taking_turns():
        assert gc.get_threshold()[0] == 10 * YOUNG
    gc.set_threshold(*threshold)
    with taking_turns():
        gc.set_threshold(5, 6, 7)
    assert gc.get_threshold() == (5, 6, 7)


def test_who_waits_for_a_turn_keeps_nothing_from_who_has_it():
    made = []

    class Code:
        @made_in_turn
        def text(self):
            made.append(self)
            return "text"

    code, found = Code(), []
    with taking_turns():
        other = threading.Thread(target=lambda: found.append(code.text), daemon=True)
        other.start()
        other.join(0.05)
        assert code.text == "text" and not found
    other.join(5)
    assert found == ["text"] and made == [code] and vars(code) == {"text": "text"}
    assert isinstance(Code.text, made_in_turn)
