"""Import address of the parallel runtime in generated text: `from s2s.runtime.parts import
in_parts`, in files that users keep, too.
"""

from .threads.parallel_for import add_parts, apart, in_parts, natural, parts_of

__all__ = ["add_parts", "apart", "in_parts", "natural", "parts_of"]
