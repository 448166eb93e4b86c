"""The Python of docs/interop.md runs, where the system is installed that it is for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import s2s

PAGE = Path(__file__).parent.parent.parent / "docs" / "interop.md"
BLOCKS = dict(re.findall(r"^```python (\w+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S))


@pytest.mark.parametrize("system", BLOCKS)
def test_block(system, tmp_path):
    pytest.importorskip(system, reason=f"{system} is not installed")
    file = tmp_path / "example.py"
    file.write_text(BLOCKS[system])
    exec(compile(BLOCKS[system], str(file), "exec"), {"np": np, "s2s": s2s, "__name__": "page"})
