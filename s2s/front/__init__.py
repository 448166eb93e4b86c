"""Abstract interpretation of Python functions: run the syntax tree once on types and emit IR."""

from .eval.build import Callee, build, callee_of, parameters
from .eval.entry_line import at_definition_line, definition_line
from .eval.parse_ir import annotated_types, build_from_text, from_text, load_text, parse_type
from .rules.custom_derivatives import custom_jvp, custom_vjp, defderivative

__all__ = [
    "Callee", "annotated_types", "definition_line", "build", "build_from_text", "callee_of",
    "custom_jvp", "custom_vjp", "defderivative", "from_text", "load_text", "parameters",
    "parse_type", "at_definition_line"
]
