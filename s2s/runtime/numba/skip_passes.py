"""Skip Numba's passes that find nothing to rewrite in generated code.

Two of them traverse a function several times, and repair it afterwards, in order to rewrite
closures, comprehensions and whole-array expressions as loops. Generated code is loops: a quick scan
tells whether it has any of these, and mostly it has not. They took a fifth of Numba's Python time.
They run where the scan finds one, and in versions of Numba with other passes.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ..numba_internals import (
    DUFunc,
    InlineClosureLikes,
    NopythonRewrites,
    numba_ir,
    register_pass,
)


def _expressions(function: numba_ir.FunctionIR):
    return ((inst.target.name, inst.value) for block in function.blocks.values()
            for inst in block.body
            if isinstance(inst, numba_ir.Assign) and isinstance(inst.value, numba_ir.Expr))


def has_closures(state) -> bool:
    """Whether the function may contain closures or comprehensions that Numba rewrites before type
    inference.
    """
    return any(x.op in ("make_function", "build_list", "build_set", "build_map")
               for _, x in _expressions(state.func_ir))


def has_array_expressions(state) -> bool:
    """Whether the function may contain array expressions that Numba rewrites after type inference.
    """
    for name, x in _expressions(state.func_ir):
        if x.op in ("build_list", "arrayexpr"):
            return True
        if (x.op in ("unary", "binop", "inplace_binop")
            and isinstance(state.typemap.get(name), types.Array)):
            return True
        if x.op == "call" and isinstance(state.typemap.get(name), types.Array):
            called = getattr(state.typemap.get(x.func.name), "typing_key", None)
            if isinstance(called, (np.ufunc, DUFunc)):
                return True
        if x.op == "getitem" and isinstance(state.typemap.get(x.index.name), types.StringLiteral):
            return True
    return any(isinstance(inst, numba_ir.SetItem)
               and isinstance(state.typemap.get(inst.index.name), types.StringLiteral)
               for block in state.func_ir.blocks.values() for inst in block.body)


@register_pass(mutates_CFG=True, analysis_only=False)
class ClosuresIfAny(InlineClosureLikes):
    """InlineClosureLikes, skipped where there are none."""

    _name = "s2s_inline_closure_likes"

    def run_pass(self, state):
        return has_closures(state) and super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class ArrayExpressionsIfAny(NopythonRewrites):
    """NopythonRewrites, skipped where there are none."""

    _name = "s2s_nopython_rewrites"

    def run_pass(self, state):
        return has_array_expressions(state) and super().run_pass(state)


INSTEAD = {InlineClosureLikes: ClosuresIfAny, NopythonRewrites: ArrayExpressionsIfAny}


def lighter(manager):
    """The pass manager, with its passes replaced by these."""
    manager.passes = [(INSTEAD.get(each, each), said) for each, said in manager.passes]
    manager.finalize()
    return manager
