"""From Python functions to IR: the syntax tree, run once on types, emitting as it goes."""

from .begins import beginning, placed
from .callee import Callee, build, callee_of, parameters
from .rules import custom_jvp, custom_vjp, defderivative
from .text import annotated_types, build_from_text, from_text, load_text, parse_type

__all__ = ["Callee", "annotated_types", "beginning", "build", "build_from_text", "callee_of", "custom_jvp", "custom_vjp", "defderivative", "from_text", "load_text",
           "parameters", "parse_type", "placed"]
