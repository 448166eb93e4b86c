"""The private names of Numba and llvmlite that s2s uses, looked up and checked when this module is
imported.

What Numba and llvmlite document (`numba.njit`, `numba.types`, `numba.extending`, `llvmlite.ir`,
`llvmlite.binding`) is imported where it is used. Everything else may change with any release. It is
named here, and imported from here:

    NAMES      alias -> where it stands in Numba or llvmlite; each is a name of this module
    MEMBERS    class -> methods and attributes that s2s overrides, calls or reads

`MISSING` lists what this version lacks. If there is anything, programs are compiled by `@njit`
alone, which is documented (runtime/call/plain_function.py); `explain()` says what is missing.

Considered: to import each private name where it is used. A release that moves one then shows as an
ImportError in one of forty modules, while a program is compiled; what is only an attribute shows
after that, in the middle of code generation. To ask for the version instead: a bound has to be
raised by hand for each release, and says nothing about a development version.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from types import CodeType

import llvmlite
import numba

NAMES = {
    "AbstractTemplate": "numba.core.typing.templates:AbstractTemplate",
    "ArgPacker": "numba.core.datamodel.packer:ArgPacker",
    "BaseNativeLowering": "numba.core.typed_passes:BaseNativeLowering",
    "Cache": "numba.core.caching:_Cache",
    "CompileResult": "numba.core.compiler:CompileResult",
    "Compiler": "numba.core.compiler:Compiler",
    "CPUContext": "numba.core.cpu:CPUContext",
    "DUFunc": "numba.np.ufunc.dufunc:DUFunc",
    "Dispatcher": "numba.core.dispatcher:Dispatcher",
    "Environment": "numba.core.environment:Environment",
    "InlineClosureLikes": "numba.core.untyped_passes:InlineClosureLikes",
    "InsertValue": "llvmlite.ir.instructions:InsertValue",
    "JITCPUCodegen": "numba.core.codegen:JITCPUCodegen",
    "JITCodeLibrary": "numba.core.codegen:JITCodeLibrary",
    "JitEngine": "numba.core.codegen:JitEngine",
    "Loc": "numba.core.ir:Loc",
    "Lower": "numba.core.lowering:Lower",
    "MemInfo": "numba.core.runtime.nrt:MemInfo",
    "NRTContext": "numba.core.runtime.context:NRTContext",
    "NativeValue": "numba.core.pythonapi:NativeValue",
    "NewPassManager": "llvmlite.binding.newpassmanagers:NewPassManager",
    "NoPythonBackend": "numba.core.typed_passes:NoPythonBackend",
    "NopythonRewrites": "numba.core.typed_passes:NopythonRewrites",
    "ObjectRef": "llvmlite.binding.ffi:ObjectRef",
    "PassManager": "numba.core.compiler_machinery:PassManager",
    "PythonAPI": "numba.core.pythonapi:PythonAPI",
    "RETCODE_OK": "numba.core.callconv:RETCODE_OK",
    "RuntimeLinker": "numba.core.codegen:RuntimeLinker",
    "StructProxy": "numba.core.cgutils:_StructProxy",
    "arrayobj": "numba.np.arrayobj",
    "as_dtype": "numba.np.numpy_support:as_dtype",
    "callconv": "numba.core.callconv",
    "cgutils": "numba.core.cgutils",
    "dumps": "numba.core.serialize:dumps",
    "dynfunc": "numba._dynfunc",
    "force_error_model": "numba.core.imputils:force_error_model",
    "global_compiler_lock": "numba.core.compiler_lock:global_compiler_lock",
    "impl_ret_borrowed": "numba.core.imputils:impl_ret_borrowed",
    "impl_ret_new_ref": "numba.core.imputils:impl_ret_new_ref",
    "infer_global": "numba.core.typing.templates:infer_global",
    "load_item": "numba.np.arrayobj:load_item",
    "lookup_environment": "numba.core.environment:lookup_environment",
    "normalize_ir_text": "numba.core.cgutils:normalize_ir_text",
    "numba_ir": "numba.core.ir",
    "numba_typing": "numba.core.typing",
    "register_pass": "numba.core.compiler_machinery:register_pass",
    "rtsys": "numba.core.runtime:rtsys",
    "signature": "numba.core.typing:signature",
    "store_item": "numba.np.arrayobj:store_item",
    "ufunc_find_matching_loop": "numba.np.numpy_support:ufunc_find_matching_loop",
}
DYNAMIC_GLOBALS = "numba.dynamic.globals"  # begins the names of addresses of this process
MEMBERS = {
    "BaseNativeLowering": "run_pass lowering_class",
    "CPUContext": "get_function pair_first pair_second get_abi_sizeof create_cpython_wrapper "
                  "get_executable codegen nrt get_python_api call_conv data_model_manager refresh "
                  "_internal_codegen _defns insert_user_function",
    "Cache": "cache_path enable disable flush load_overload save_overload",
    "CompileResult": "_reduce _rebuild library fndesc signature entry_point lifted",
    "Compiler": "compile_extra compile_ir define_pipelines _compile_core state",
    "Dispatcher": "_cache _compile_for_args add_overload overloads typeof_pyval _cache_hits "
                  "_cache_misses py_func targetctx",
    "Environment": "env_name",
    "InlineClosureLikes": "run_pass",
    "JITCPUCodegen": "_tm _engine _data_layout _loopvect _opt_level _customize_tm_options "
                     "_function_pass_manager _module_pass_manager _library_class _rtlinker "
                     "set_env",
    "JITCodeLibrary": "_codegen _ensure_finalized _final_module _finalize_dynamic_globals "
                      "_finalize_final_module _finalize_specific _dynamic_globals _finalized "
                      "_get_compiled_object _get_module_for_linking _linking_libraries "
                      "_object_compiled_hook _object_getbuffer_hook "
                      "_optimize_final_module _optimize_functions _recorded_timings _reload_init "
                      "_shared_module add_ir_module add_llvm_module codegen enable_object_caching "
                      "finalize get_asm_str get_llvm_str get_pointer_to_function "
                      "has_dynamic_globals serialize_using_object_code",
    "JitEngine": "_ee _load_defined_symbols is_symbol_defined finalize_object "
                 "set_object_cache",
    "Lower": "init lower_function_body blkmap firstblk",
    "NRTContext": "_context decref get_meminfos meminfo_data",
    "NewPassManager": "_dispose run",
    "NopythonRewrites": "run_pass",
    "ObjectRef": "_owned close",
    "PythonAPI": "_get_function from_native_value nrt_adapt_ndarray_to_python to_native_value "
                 "unserialize",
    "StructProxy": "_getvalue",
}


def available_objects() -> dict[str, object]:
    """The objects of NAMES that this version has, by alias."""
    objects = {}
    for alias, place in NAMES.items():
        try:
            objects[alias] = pkgutil.resolve_name(place)
        except (ImportError, AttributeError):
            continue
    return objects


def missing(objects: Mapping[str, object]) -> Iterator[str]:
    """The names and members that this version lacks, as it would spell them."""
    for alias, place in NAMES.items():
        if alias not in objects:
            yield place.replace(":", ".")
    for alias, members in MEMBERS.items():
        if alias in objects:
            known = members_of(objects[alias])
            yield from (f"{NAMES[alias].replace(':', '.')}.{member}"
                        for member in members.split() if member not in known)


def members_of(cls: type) -> set[str]:
    """The names of the attributes of a class and of its instances: those that its methods mention.

    >>> class Point:
    ...     kind = "point"
    ...     def __init__(self):
    ...         self.x = 0
    >>> {"kind", "x"} <= members_of(Point), "y" in members_of(Point)
    (True, False)
    """
    names = {*dir(cls)}
    for base in cls.__mro__:
        for x in vars(base).values():
            function = getattr(x, "fget", None) or getattr(x, "__func__", x)
            function = getattr(function, "__wrapped__", function)
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType):
                names |= {*code.co_names}
    return names


def explain() -> str:
    """Which private names this version lacks, in one sentence; empty if there are all."""
    if not MISSING:
        return ""
    return (f"Numba {numba.__version__} with llvmlite {llvmlite.__version__} has no "
            f"{', '.join(MISSING)}")


_objects = available_objects()
MISSING = tuple(missing(_objects))
globals().update(_objects)
__all__ = [*NAMES]


def __getattr__(name: str):
    """Raise ImportError for a name that this version of Numba lacks."""
    if name in NAMES:
        raise ImportError(explain())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
