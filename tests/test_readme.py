"""The Python in the README runs, and prints what the README says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def blocks() -> list[str]:
    """The Python blocks, in order: the second is what the first prints."""
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.S)


def run(code: str, names: dict, name: str) -> None:
    """Run `code` from a file, so that its functions have a source."""
    Path(name).write_text(code)
    exec(compile(code, name, "exec"), names)


def test_it_shows_what_is_printed(tmp_path, monkeypatch, capsys, request):
    monkeypatch.chdir(tmp_path)
    code, shown, *_ = blocks()
    run(code, {"__name__": "readme"}, "readme.py")
    printed = re.sub(r'\A.*?(?=def )|    """.*?"""\n', "", capsys.readouterr().out, flags=re.S).rstrip() + "\n"
    assert "import s2s" not in Path("relax_grad.py").read_text()
    if request.config.getoption("--update-golden"):
        README.write_text(README.read_text().replace(shown, printed))
    else:
        assert shown == printed


@pytest.mark.compile
def test_what_follows_runs_and_is_refused_as_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("S2S_CACHE_DIR", str(tmp_path / "cache"))
    first, _, use, refused, decided = blocks()
    names: dict = {"__name__": "readme"}
    run(first, names, "first.py")
    run(use, names, "use.py")
    assert names["fit"].success and names["each"].shape == (50, 3)
    assert set(names["slope"]) == {"w", "b"} and names["w_bar"].shape == names["curvature"].shape == (3,)
    capsys.readouterr()
    run(refused, names, "readme.py")
    said = "".join(f"    {line}\n" for line in capsys.readouterr().out.splitlines())
    assert re.sub(r"^    \S*readme\.py", "    readme.py", said) in README.read_text()
    run(decided, names, "readme.py")
    last = "".join(f"    {line}\n" for line in capsys.readouterr().out.splitlines()[-4:])
    assert re.sub(r"^    \S*readme\.py", "    readme.py", last) in README.read_text()
