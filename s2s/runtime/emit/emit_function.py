"""Direct lowering: generated source text to LLVM IR in two walks over its syntax tree, without
Numba's bytecode analysis.

    def f(x, n):                   SSA values and slots    (ssa_names.py)
        t = 0.0                    types                   (infer_names.py, infer_expressions.py)
        for i in range(n):   ->    LLVM IR                 (emit_statements.py, emit_expressions.py)
            t += x[i]
        return t

Numba compiles bytecode, which has lost the structure of the text: it recovers blocks, loops,
definitions and lifetimes, several times over, infers types by solving constraints, and keeps each
variable in memory, which LLVM must then undo. That was half of the time of a first call. Generated
code consists of loops over ranges, branches, array elements and arithmetic, whose blocks and types
can be read off in order. The type and lowering of each call come from Numba's tables here, too, so
that nothing has two meanings.

Lists are Numba's: the item type of an empty list follows from what is appended to it or what it is
joined with (infer_expressions.py, EmptyList); comprehensions are desugared
(desugar_comprehensions.py). Everything else (in-place addition to whole arrays, strings, caught
exceptions, objects, recursion) and code with bounds checks is left to Numba, a whole function at a
time.

Considered: making single passes of Numba cheaper (a gain of a fifth, at the price of knowing their
internals); lowering s2s's own IR, which has types: but parallel parts, kernels and spelling are
decided on the text, and exported modules are compiled from it, too.
"""

from __future__ import annotations

import ast
import functools
from types import SimpleNamespace

from ..debug.load_source import TEXT
from ..numba_internals import BaseNativeLowering, Loc, Lower, register_pass
from .collapse_nests import nests_of
from .desugar_comprehensions import spread_out
from .emit_statements import Statements
from .infer_names import inferred
from .outline_loops import extracted, is_bare
from .ssa_names import NotDirect
from .unroll_hints import Unrolling


class DirectLower(Lower):
    """Numba's frame around the code of a function: calling convention, return, Python wrapper."""

    def init(self):
        pass

    def lower_function_body(self):
        entry = self.builder.basic_block
        self.blkmap[self.firstblk] = first = self.function.append_basic_block()
        self.builder.position_at_end(first)
        of = self.func_ir
        statements = Statements(self, of.tree, of.inference, of.unrolling.left, of.nests,
                                extracted(of.tree, of.inference, of.unrolling.few))
        statements.filename = self.func_ir.loc.filename
        statements.emit()
        if statements.done and is_bare(of.tree.body, statements.done):
            self.library.bare.add(self.fndesc.llvm_func_name)
        return entry


@register_pass(mutates_CFG=True, analysis_only=False)
class DirectLowering(BaseNativeLowering):
    """Infer the types of a function and emit its LLVM IR; NotDirect where Numba's own passes must
    do it.
    """

    _name = "s2s_direct_lowering"
    lowering_class = DirectLower

    def run_pass(self, state):
        try:
            self.find_types(state)
            state.library.is_direct = True
            state.library.is_unrolled = state.func_ir.unrolling.short
            return super().run_pass(state)
        except (NotImplementedError, RecursionError) as error:  # expressions of a thousand terms
            self.forget(state)
            raise NotDirect(str(error)) from error
        except Exception:
            self.forget(state)
            raise

    @staticmethod
    def forget(state) -> None:
        """Undo everything, so that Numba's own passes can compile the function."""
        state.func_ir = state.typemap = state.calltypes = state.return_type = None
        state.library.is_direct = state.library.is_unrolled = False

    @staticmethod
    def find_types(state) -> None:
        identity = state.func_id
        tree = functions_of(identity.func.__globals__[TEXT])[identity.func.__name__]
        with state.typingctx.callstack.register(state.targetctx.target, None, identity, state.args):
            inference = inferred(state.typingctx, tree, identity.func.__globals__, state.args)
        names = [a.arg for a in tree.args.args]
        state.typemap = {f"arg.{name}": kind for name, kind in zip(names, state.args)}
        state.calltypes, state.return_type = {}, inference.result
        # whose indices exceed an axis, but stay inside their arrays
        nests = {} if state.targetctx.is_sanitized else nests_of(tree.body)
        state.func_ir = SimpleNamespace(func_id=identity, arg_names=names, is_generator=False,
                                        generator_info=None, blocks={0: None},
                                        loc=Loc(identity.filename, tree.lineno), tree=tree,
                                        inference=inference, nests=nests,
                                        unrolling=Unrolling(tree, inference.bindings.values,
                                                            nests.values()))


@functools.lru_cache(maxsize=4)
def functions_of(text: str) -> dict[str, ast.FunctionDef]:
    """The functions defined in a module."""
    return {node.name: spread_out(node)
            for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def emitter(state) -> type[BaseNativeLowering] | None:
    """The pass that emits the LLVM IR of a function; None where Numba's own passes must do it.

    Numba's compiler (runtime/numba/compiler.py) knows no more of this folder than this function:
    what the IR is emitted from, the text or the loops that it was printed from, is decided here.
    A function with bytecode of its own is an object-mode block lifted by Numba, and has no text.
    """
    flags, function = state.flags, state.func_id.func
    has_text = state.func_ir is None and TEXT in function.__globals__
    return (DirectLowering if has_text and not (flags.boundscheck or flags.force_pyobject
                                                or flags.debuginfo) else None)
