"""An execution engine for each generated module: its machine code is freed with the module.

Numba has one engine in a process, removes no module from it, and LLVM cannot remove an object file.
So a program that was compiled and dropped left its machine code for good, a tenth of a megabyte and
more. An engine of its own takes less than a millisecond, and is disposed of when nothing refers to
the code any more: the module, its dispatchers, and the entry points that Numba made (which hold
their library, which holds the engine).

What generated code calls of Numba's own (`np.dot`, lists) is compiled by Numba for everybody, in
its engine, and linked into this code as LLVM text.
"""

from __future__ import annotations

import copy

from llvmlite import binding
from numba import config

from ..numba_internals import JitEngine, RuntimeLinker
from .parallel_codegen import beside

CODEGEN = "__s2s_codegen__"  # global of a generated module: its code generator, None before that


def codegen_of(scope: dict, codegen):
    """The code generator of the module whose globals are `scope`: one like Numba's `codegen`, with
    an engine of its own; `codegen` itself for a module that is not generated.
    """
    if CODEGEN not in scope:
        return codegen
    if scope[CODEGEN] is None:
        scope[CODEGEN] = with_engine(codegen)
    return scope[CODEGEN]


def with_engine(codegen):
    """A code generator like Numba's `codegen`, with an execution engine of its own."""
    found = beside(codegen)
    empty = binding.parse_assembly(f'target triple = "{binding.get_process_triple()}"\n')
    engine = binding.create_mcjit_compiler(empty, found._tm,
                                           use_lmm=config.USE_LLVMLITE_MEMORY_MANAGER)
    found._engine, found._rtlinker = JitEngine(engine), RuntimeLinker()
    library = found._library_class
    found._engine.set_object_cache(library._object_compiled_hook, library._object_getbuffer_hook)
    return found


def with_codegen(context, codegen):
    """A copy of Numba's target context that loads code into the engine of `codegen`."""
    found = copy.copy(context)
    found._internal_codegen = codegen
    return found
