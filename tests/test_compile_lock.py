"""Generating code takes turns."""

import threading

from s2s.compile_lock import cached_in_turn, taking_turns


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
