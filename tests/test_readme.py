"""The Python in the README and in docs/ runs, and prints what the pages say.

The blocks of a page run one after the other, in one namespace.  A `text` block, and a Python block
after a line that says `prints`, is what the block before it prints; one that begins with `...` is
the end of it.
"""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "docs/using.md",
    "docs/language.md",
    "docs/compiling.md",
    "docs/checks.md",
    "docs/rules.md",
    "docs/axes.md",
    "docs/workers.md",
]
PROSE = [*PAGES, "docs/interop.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/non-smooth.md",
         "docs/refusals.md"]
BLOCK = re.compile(r"(prints\n\n)?^```(python|text)\n(.*?)^```$", re.M | re.S)


def blocks(page: str) -> list[tuple[str, str]]:
    """(code, what it prints, or "" where the page does not say) of each block that runs."""
    found: list[tuple[str, str]] = []
    for shown, language, text in BLOCK.findall((ROOT / page).read_text()):
        if shown or language == "text":
            code, before = found.pop()
            assert not before, "two outputs of one block"
            found.append((code, text))
        else:
            found.append((text, ""))
    return found


def run(code: str, names: dict, number: int, capsys) -> str:
    """What `code` prints, run from a file of its own, so that its functions have a source."""
    file = Path(str(number), "example.py")
    file.parent.mkdir()
    file.write_text(code)
    capsys.readouterr()
    exec(compile(code, str(file.absolute()), "exec"), names)
    return re.sub(r"\S*/example\.py", "example.py", capsys.readouterr().out)


def without_header(source: str) -> str:
    """A generated function, without its imports and its docstring."""
    return re.sub(r'\A.*?(?=def )|    """.*?"""\n', "", source, flags=re.S).rstrip() + "\n"


def test_the_first_block_shows_what_is_printed(tmp_path, monkeypatch, capsys, request):
    monkeypatch.chdir(tmp_path)
    (code, shown), *_ = blocks("README.md")
    printed = without_header(run(code, {"__name__": "readme"}, 0, capsys))
    assert "import s2s" not in Path("relax_grad.py").read_text()
    if request.config.getoption("--update-golden"):
        readme = ROOT / "README.md"
        readme.write_text(readme.read_text().replace(shown, printed))
    else:
        assert shown == printed


@pytest.mark.compile
@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("S2S_CACHE_DIR", str(tmp_path / "cache"))
    names: dict = {"__name__": "page"}
    exec("import numpy as np\nimport scipy\nimport s2s", names)
    for number, (code, shown) in enumerate(blocks(page)):
        printed = run(code, names, number, capsys)
        if shown.startswith("def "):
            assert without_header(printed) == shown
        elif shown.startswith("..."):
            assert printed.rstrip().endswith(shown.removeprefix("...").strip())
        elif shown:
            assert printed.rstrip() == shown.rstrip()
    if page == "README.md":
        assert names["x_bar"].shape == (8,) and names["H"].shape == names["each"].shape == (8, 8)
        assert names["mixed"].shape == (2, 8) and np.isfinite(names["e_dot"])
        assert "import s2s" not in Path("stiffness.py").read_text()


@pytest.mark.parametrize("page", PROSE)
def test_lines_and_paragraphs_fit_and_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    lines = [line for line in prose.splitlines() if not line.startswith(("|", "    "))]
    assert not [line for line in lines if len(line) > 120]
    paragraphs = re.split(r"\n\n+|\n(?=\* |\d+\. )", "\n".join(lines))
    assert not [paragraph for paragraph in paragraphs if paragraph.strip().count("\n") >= 6]
    for link in re.findall(r"\]\(([^)#]+)", re.sub(r"`[^`]*`", "", prose)):
        assert link.startswith("http") or (ROOT / page).parent.joinpath(link).exists(), link
