"""Generating code takes turns, and leaves the process as it was."""

import gc
import sys
import threading
import weakref

import pytest

import s2s
from s2s.ir.compile_lock import FIRST, YOUNG, Turn, cached_in_turn, taking_turns, with_frames


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
        @cached_in_turn
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
    assert isinstance(Code.text, cached_in_turn)


@pytest.mark.lengthy
def test_what_the_first_turns_leave_is_not_looked_at(threshold, monkeypatch):
    """It is old from then on; later ones, and those of programs that have frozen objects, have the young looked at."""
    class Node:
        pass

    def left_by_a_turn() -> weakref.ref:
        gc.collect()
        with taking_turns():
            kept = [Node() for _ in range(2 * threshold[0])]
            node = kept.pop()
            node.itself = node
            found = weakref.ref(node)
            del node
        del kept
        return found

    monkeypatch.setattr(Turn, "unseen", 0)
    found = left_by_a_turn()
    assert found() is not None and threshold[0] < Turn.unseen < FIRST and gc.get_freeze_count() == 0
    monkeypatch.setattr(Turn, "unseen", FIRST)
    assert left_by_a_turn()() is None
    monkeypatch.setattr(Turn, "unseen", 0)
    gc.freeze()
    try:
        assert left_by_a_turn()() is None and gc.get_freeze_count()
    finally:
        gc.unfreeze()


@pytest.mark.skipif(sys.version_info < (3, 11) or sys.platform != "linux", reason="frames are objects of their own there, or memory is counted otherwise")
def test_code_is_generated_where_frames_have_room():
    """Python's stack comes in chunks of 16 KiB; none is taken and given back again and again, however deep the caller stands."""
    import resource

    def pages(depth: int) -> int:
        if depth:
            return pages(depth - 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        with_frames(lambda: [None for _ in range(300) if leaf()])
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    def leaf():
        return False

    assert max(min(pages(depth) for _ in range(3)) for depth in range(160)) < 100
    assert with_frames(lambda *args, **kwargs: (args, kwargs), 1, x=2) == ((1,), {"x": 2})
