"""The notebook, run from its first cell to its last by Jupyter."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install -e "
                                                  ".[notebook]")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install -e "
                                                  ".[notebook]")
pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install -e .[notebook]")

pytestmark = pytest.mark.slow  # it starts a kernel
INTRO = Path(__file__).parent.parent / "notebooks" / "intro.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook with its outputs; a cell that raises fails the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(INTRO.parent.parent))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        notebook = nbformat.read(INTRO, as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return notebook


def printed(notebook, text: str) -> str:
    """What the cell that contains `text` prints, which a busy kernel sends in pieces."""
    (cell,) = (c for c in notebook.cells if c.cell_type == "code" and text in c.source)
    assert all(output.output_type == "stream" for output in cell.outputs)
    return "".join(output.text for output in cell.outputs)


def test_source_is_printed(executed):
    text = printed(executed, "print(slope.source)")
    assert "def settle_grad(x, rate):" in text
    assert "for x" in text and "reversed(x_tape)" in text


def test_a_transformed_function_shows_itself(executed):
    (output,) = [
        o
        for c in executed.cells
        if c.cell_type == "code" and c.source == "slope"
        for o in c.outputs
    ]
    page = output.data["text/html"]
    assert page.count("<pre>") == 2, "two columns"
    assert "while abs(x) &gt; 1e-3:" in page and "x_bar" in page
    assert 'data-line="' in page


def test_matrix_vector_lanes_are_one_product(executed):
    assert "np.tanh(x @ W.T)" in printed(executed, "print(layers.source)")


def test_lanes_run_the_users_lines(executed):
    assert "for lane in range(" in printed(executed, "print(roots.source)")


def test_the_notebook_is_kept_without_outputs():
    assert all(
        not c.outputs for c in nbformat.read(INTRO, as_version=4).cells if c.cell_type == "code"
    )
