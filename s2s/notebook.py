"""HTML of a function and its derivative side by side, with linked lines.

Generated lines know the user's line that they come from; pointing at one shows the others.
"""

from __future__ import annotations

from .back.print.printer import Module
from .errors import Line
from .lazy_import import later

html = later("html")  # whose table of 2,231 names takes as long to load as all ops

STYLE = """
<style>
.s2s { display: flex; gap: 2em; font-family: monospace; font-size: 13px; overflow-x: auto; }
.s2s pre { margin: 0; padding: 0; background: none; }
.s2s span.line { display: block; white-space: pre; padding: 0 .5em; min-height: 1.2em; }
.s2s span.back { border-left: 2px solid #b66; }
.s2s span.lit { background: rgba(255, 200, 60, .35); }
</style>
"""

SCRIPT = """
<script>
(function () {
  const root = document.currentScript.previousElementSibling;
  function light(on) {
    return function (event) {
      const line = event.target.closest('[data-line]');
      if (!line) return;
      root.querySelectorAll('[data-line="' + line.dataset.line + '"]').forEach(
        function (other) { other.classList.toggle('lit', on); });
    };
  }
  root.addEventListener('mouseover', light(true));
  root.addEventListener('mouseout', light(false));
})();
</script>
"""


def side_by_side(module: Module) -> str:
    """Return HTML with the user's function on the left and `module` on the right; lines that belong
    together are linked.
    """
    left = []
    sources = {line.source: None for line in module.lines.values()}
    for source in sources:
        for k, text in enumerate(source.text.splitlines()):
            left.append(row(text, source.first_line + k, False))
    right = []
    for k, text in enumerate(module.text.splitlines(), 1):
        line: Line | None = module.lines.get(k)
        right.append(row(text, line.number if line else None, bool(line and line.backwards)))
    columns = "".join(f"<pre>{''.join(rows)}</pre>" for rows in (left, right))
    return f'{STYLE}<div class="s2s">{columns}</div>{SCRIPT}'


def row(text: str, number: int | None, backwards: bool) -> str:
    """Format one line of code with the number of the user's line."""
    link = "" if number is None else f' data-line="{number}"'
    return f'<span class="line{" back" if backwards else ""}"{link}>{html.escape(text)}</span>'
