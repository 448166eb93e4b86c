"""Numba's compiler for generated code, with LLVM optimisation levels chosen by code size.

Note [What compiling costs]
Numba runs LLVM three times over a function: function by function before linking, cheaply after it,
and then in full, all at level 3.  Its Python part is linear in the number of statements; LLVM's is
not.  A truncated Newton-CG on a hidden Markov model (631 lines of loops, 50,000 LLVM instructions,
one core):

    levels of the first and the last run     first    cheap     full   code   seconds
    3 and 3, as Numba does                    22.4      0.2      3.9    1.8      28.3
    1 and 2                                    5.2      0.3      1.8    1.0       8.3

and a stencil of 275 lines 6.1 and 2.5 s.  Level 3 differs from 2 by unswitching loops on conditions
that they do not change, and with every `for` inside a `for` comes one: is its range empty?  Each
nest is doubled, and again by the nest around it, before the vectoriser or the register allocator
sees it.  The first run has nothing to lose at level 1: what it leaves undone, the last does, after
inlining.  In a small function unswitching is cheap, and a test that a loop makes again and again is
worth it, so those keep level 3 in the last run. Considered as well: leaving the first run out (the
cheap one then drags 50,000 instructions along: 4 % slower), and a list of passes of our own in
place of it (SROA, CFG simplification, combining: 15 % slower, and bound to one version of
llvmlite). Code that comes straight from its text (emit/) has no memory to take apart and nothing to
undo.  So the first run is left out, and the cheap one, which prunes references; where much is
compiled, the last is at level 1: gradients of a convolutional network, of bundle adjustment, of an
LSTM and of that Newton-CG came out as fast or faster, and the network's LLVM takes 1.2 s for 1.6.
What Python calls is run once a call, and so is what is left of a function whose loops are functions
of their own (runtime/emit/outline_loops.py): both are compiled at level 0, which takes LLVM a third
of the time, and costs 0.1 microseconds of 0.8 for a call that takes and returns three arrays, 0.4
of 3.3 for ten.  Where there are many more, that is level 1. Where loops have few trips, and LLVM
knows how many, the first run stays, and the last is at level 2: what the first unrolls, the last
makes vectors of. A mixture of Gaussians took 1.7 times as long without, a Kalman filter 1.4, and
compiling them no less. That takes LLVM's vectoriser of straight lines, too, which Numba leaves out:
the mixture in loops over points took 1.3 times as long without, a hidden Markov model of four
states twice. The levels are Numba's own setting, changed for the time of a run under the lock that
every compilation holds; so nothing here depends on how a version of Numba builds its passes, and no
other function of the process is compiled differently.

Note [Functions that native code alone calls]
Numba generates machine code for each function, even without a Python wrapper: all three runs of
LLVM, instruction selection, linking. Nobody runs it: callers link its LLVM code into their own and
compile that again. So such functions stop after the first run; they are inlined or compiled once,
in the library that calls them. Recursive functions are called through an address, and have code of
their own as before. The constants that such a function refers to (its environment) get their
address where it is compiled.

Note [Machine code of long functions]
Before instruction selection, LLVM walks the blocks of a function, and starts again after each
change of the control-flow graph: quadratic in their number, 10 of 13 seconds for 400 loops. From
10,000 blocks on it keeps a worklist; here from fewer on. This is a command-line option of LLVM, and
an unknown option ends the process: it is set only for versions known to have it, once, and not
before there is such a function.
"""

from __future__ import annotations

import functools
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType

from llvmlite import binding, ir
from numba import NumbaError, config

from ...check_flags import may_set_llvm_options
from ...compile_lock import held_at_fork
from ...lazy_import import later
from ..intrinsics.boxing import with_boxes
from ..intrinsics.element_access import item, short
from ..intrinsics.slice_assign import is_assignment, without_text
from ..llvm.parallel_codegen import (
    BackgroundCompilation,
    Piece,
    Symbols,
    beside,
    dispose,
    hand_over,
)
from ..llvm.program_engine import CODEGEN, codegen_of
from ..llvm.split_module import NotMergeable, Pieces, in_pieces
from ..numba_internals import (
    DYNAMIC_GLOBALS,
    Compiler,
    Environment,
    JITCodeLibrary,
    NoPythonBackend,
    PassManager,
    dynfunc,
    global_compiler_lock,
    lookup_environment,
    normalize_ir_text,
    rtsys,
)
from .skip_passes import lighter

direct = later("s2s.runtime.emit.emit_function")  # not needed for cached code

# levels: of the wrapper, of the run before linking, of the last run on large code
LOWEST, FIRST, LARGE, LARGE_AND_DIRECT = 0, 1, 2, 1
BLOCKS = 500  # blocks of a module from which LLVM keeps a worklist
WITH_LIST = range(20, 23)  # LLVM versions with that option

# global of a generated module: what its functions are lowered to
DEFINITIONS = "__s2s_definitions__"

QUICK = 0.2  # relative cost per line of code at the lower levels
# instructions of what Python calls, from which on that is worth a level: containers of some twenty
# arrays
WIDE = 1_500
# instructions before the last run, without what Python calls: from here on a function is large
MANY = 1_200
INSTRUCTION = "\n  "  # before each, in the text of a module

held_at_fork.append(global_compiler_lock)

_sizes: dict[str, int] = {}  # bytes of LLVM's types, by their text


class Effort(Compiler):
    """Numba's compiler, for `@njit(pipeline_class=Effort)`."""

    is_sanitized = has_guards = False  # runtime/debug/sanitizer.py

    def compile_extra(self, func):
        self._own_library(func)
        return super().compile_extra(func)

    def compile_ir(self, func_ir, lifted=(), lifted_from=None):
        self._own_library(func_ir.func_id.func)
        return super().compile_ir(func_ir, lifted, lifted_from)

    def define_pipelines(self):
        theirs = [lighter(manager) for manager in super().define_pipelines()]
        if self.emitter is None:
            return theirs
        manager = PassManager("direct")
        manager.add_pass(self.emitter, "types and code")
        manager.add_pass(NoPythonBackend, "nopython mode backend")
        manager.finalize()
        return [manager]

    def _compile_core(self):
        if not self.has_guards:
            return self._compile_directly()
        before, config.BOUNDSCHECK = config.BOUNDSCHECK, 1
        try:  # Numba's own functions called from this are checked, too
            return self._compile_directly()
        finally:
            config.BOUNDSCHECK = before

    def _compile_directly(self):
        self.emitter = (None if calls_itself(self.state.func_id.func)
                        else direct.emitter(self.state))
        if self.emitter is not None:
            try:
                return super()._compile_core()
            except NumbaError:
                self.emitter = self.state.status.fail_reason = None
        return super()._compile_core()

    def _own_library(self, function: FunctionType) -> None:
        flags = self.state.flags
        is_part = (flags.no_cpython_wrapper and flags.no_cfunc_wrapper and not flags.force_pyobject
                   and not calls_itself(function))
        scope = function.__globals__
        self.state.targetctx = context = context_of(scope, self.state.targetctx)
        codegen = codegen_of(scope, context.codegen())
        context.is_sanitized, context.has_guards = self.is_sanitized, self.has_guards
        self.state.library = (LinkedLibrary if is_part else Library)(codegen, function.__qualname__)
        self.state.library.enable_object_caching()


class Guarded(Effort):
    """The same compiler, for code with guard words around its arrays and bounds checks by Numba."""

    has_guards = True


class Sanitized(Guarded):
    """The same compiler, for code that stops at an index out of bounds."""

    is_sanitized = True


def context_of(scope: dict, context):
    """A native copy of Numba's target context `context`; for a generated module, whose globals are
    `scope`, it has the module's own definitions.
    """
    found = native(context)
    if CODEGEN in scope and not isinstance(found._defns, OwnDefinitions):
        found._defns = scope.setdefault(DEFINITIONS, OwnDefinitions(found._defns))
    return found


class OwnDefinitions(dict):
    """The lowerings of the functions of one module, and after them those of Numba's context,
    `theirs`, for all others.

    Numba's own table is never rid of a function that refers, as each does by its globals, to
    itself.
    """

    def __init__(self, theirs: defaultdict):
        super().__init__()
        self.theirs = theirs

    def __missing__(self, key):
        return self.theirs[key]

    def add(self, key) -> None:
        self.setdefault(key, self.theirs.default_factory())


def let_go(dispatcher, scope: dict) -> None:
    """Let Numba's `dispatcher` of a function of a generated module go with that module.

    Its definitions go into the module's own context, and its signatures into a table that is not
    the one that Numba's finaliser of the dispatcher keeps.
    """
    dispatcher.overloads = type(dispatcher.overloads)()
    dispatcher.targetctx = context_of(scope, dispatcher.targetctx)


def native(context):
    """A copy of Numba's target context `context` for generated code, with our own boxing, element
    accesses and ranges.
    """
    context = with_boxes(context)
    if not hasattr(context, "is_native"):
        context.__class__ = native_kind(type(context))
    return context


@functools.cache
def native_kind(kind: type) -> type:
    """The class of target contexts for generated code, derived from Numba's."""

    class Context(kind):
        is_native = True
        is_sanitized = has_guards = False

        def get_function(self, fn, sig, _firstcall=True):
            found = short(self, fn, sig) or super().get_function(fn, sig, _firstcall)
            return (without_text(found) if is_assignment(getattr(fn, "typing_key", fn), sig.args)
                    else found)

        def insert_user_function(self, func, fndesc, libs=()):
            if isinstance(self._defns, OwnDefinitions):
                self._defns.add(func)
            super().insert_user_function(func, fndesc, libs)

        def pair_first(self, builder, val, ty):
            return item(builder, val, 0)

        def pair_second(self, builder, val, ty):
            return item(builder, val, 1)

        def get_abi_sizeof(self, ty):
            if isinstance(ty, ir.IdentifiedStructType):  # which may differ in another module
                return super().get_abi_sizeof(ty)
            found = _sizes.get(text := str(ty))
            if found is None:  # llvmlite has LLVM read a module that has a variable of the type
                found = _sizes[text] = super().get_abi_sizeof(ty)
            return found

        def create_cpython_wrapper(self, library, *args, **options):
            if isinstance(library, Library):  # object-mode code has another class
                library.begin()
            super().create_cpython_wrapper(library, *args, **options)

        def get_executable(self, library, fndesc, env):
            if not getattr(library, "is_part", False):
                return super().get_executable(library, fndesc, env)
            library.finalize()  # and no Python wrapper
            return dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname.split(".")[-1],
                                          "", 0, env, (library,))

    return Context


class Library(JITCodeLibrary):
    """The machine code of one function.  Note [What compiling costs]

    Directly lowered code stays text until it is known how it is split, and then becomes machine
    code: Numba would have LLVM parse, link and print it.
    """

    is_part = is_direct = is_unrolled = False
    size = None  # instructions, without the Python wrapper
    # the compiler of the function; the wrapper is compiled here
    beside: BackgroundCompilation | None = None
    codes_beside: list[bytes] = []
    wrapper: Piece | None = None  # the wrapper, if it is compiled separately
    left: list[str] = []  # functions that are compiled with that

    def __init__(self, codegen, name):
        super().__init__(codegen, name)
        self.texts: list[str] = []
        # functions whose loops are all elsewhere (runtime/emit/outline_loops.py)
        self.bare: set[str] = set()
        self.begun: Pieces | None = None  # everything but the wrapper, while that is emitted

    def add_ir_module(self, ir_module):
        if self.is_direct:
            self.texts.append(normalize_ir_text(str(ir_module)))
        else:
            super().add_ir_module(ir_module)

    def content(self) -> list[str]:
        """The LLVM texts of everything linked into the function."""
        found = [*self.texts]
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self.is_unrolled = self.is_unrolled or getattr(library, "is_unrolled", False)
            self.bare |= getattr(library, "bare", set())
            found += (library.content() if getattr(library, "is_direct", False) and library.is_part
                      else [module_text(library)])
        return list(dict.fromkeys(found))

    def begin(self) -> None:
        """Start compiling the module so far, everything but the Python wrapper.
        runtime/llvm/parallel_codegen.py
        """
        if self.is_direct:
            try:
                self.begun = Pieces.of(*self.content())
            except NotMergeable:
                self.as_modules()
        if not self.is_direct:
            for library in dict.fromkeys(self._linking_libraries):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
                self.is_unrolled = self.is_unrolled or getattr(library, "is_unrolled", False)
            # references are counted in both
            self._linking_libraries = [library
                                       for library in self._linking_libraries
                                       if library is rtsys.library]
            text = str(self._final_module)
        else:
            self.texts, self._linking_libraries = [], []
            text = "\n".join(self.begun.defined.values())
        self.size = text.count(INSTRUCTION)
        if text.count("\n  br ") > BLOCKS:
            work_by_list()
        if not self.is_direct:
            try:
                self.begun = Pieces.of(text)
            except NotMergeable:
                return
        found = in_pieces(self.begun, self.bare if self.is_direct else frozenset())
        if found is not None:
            texts, self.left = found
            self.beside = BackgroundCompilation([self.piece(each) for each in texts])
            if not self.is_direct:
                self.empty()

    def as_modules(self) -> None:
        """Continue as Numba does, with parsed modules in place of texts."""
        self.is_direct = False
        for text in self.texts:
            self.add_llvm_module(binding.parse_assembly(text))
        self.texts = []

    def piece(self, text: str, level: int | None = None) -> Piece:
        """A Piece that compiles a text at the function's optimisation level, or at this one."""
        codegen = beside(self._codegen, level)
        if level is not None:
            with at_level(level):
                return Piece(text, codegen._tm, [codegen._module_pass_manager()], each=QUICK)
        before = None
        if self.is_direct and self.is_unrolled:
            with at_level(FIRST):
                before = codegen._function_pass_manager()
        return Piece(text, codegen._tm, self.passes(codegen), before)

    def symbols(self) -> list[Symbols]:
        """The symbols that the code's modules define and refer to, once it is compiled."""
        return [*(piece.symbols for piece in self.pieces), Symbols.of(self._final_module)]

    def modules(self) -> list[binding.ModuleRef]:
        """The compiled modules, for inspection; they are not kept."""
        return [*(piece.module() for piece in self.pieces), self._final_module]

    @property
    def pieces(self) -> list[Piece]:
        return [*(self.beside.pieces if self.beside is not None else ()),
                *([self.wrapper] if self.wrapper is not None else ())]

    def _optimize_functions(self, ll_module):
        if self.is_direct and not self.is_unrolled:
            return
        ll_module.data_layout = self._codegen._data_layout
        with at_level(FIRST):
            manager, builder = self._codegen._function_pass_manager()
        with self._recorded_timings.record("Function passes", builder):
            for function in ll_module.functions:
                if not function.is_declaration:
                    manager.run(function, builder)
        dispose(manager)

    def passes(self, codegen) -> list[tuple]:
        """The pass managers of LLVM's last run, and their builders."""
        if self.size is None:
            self.size = instructions(self._final_module)
        is_unrolled = (self.is_unrolled
                       or any(getattr(library, "is_unrolled", False)
                              for library in self._linking_libraries))
        is_large = self.size >= MANY
        with at_level((LARGE_AND_DIRECT if self.is_direct and not is_unrolled else LARGE)
                      if is_large else config.OPT, is_unrolled):
            found = [codegen._module_pass_manager()]
            if not self.is_direct:
                found.insert(0,
                             codegen._module_pass_manager(loop_vectorize=codegen._loopvect,
                                                          slp_vectorize=False,
                                                          opt=codegen._opt_level, cost="cheap"))
            return found

    def _optimize_final_module(self):
        if self.is_direct and self.begun is None:
            self.begin()
        if self.is_direct:  # the module is empty
            said = [*self.texts, module_text(rtsys.library)]
            level = LOWEST if sum(text.count(INSTRUCTION) for text in self.texts) < WIDE else FIRST
            if self.beside is not None and not self.left:
                whole = Pieces.of(*said)
                self.wrapper = self.piece(whole.module(whole.outside()), level)
                return
            elsewhere = ({name
                          for name in self.begun.defined
                          if self.beside is not None and self.begun.is_apart(name)} - {*self.left})
            for text in said:
                self.begun.add(text, is_linked=text is said[-1])
            self.wrapper = self.piece(self.begun.module(self.begun.outside() + self.left, elsewhere,
                                                        {*self.left}),
                                      level if self.beside is not None else None)
            return
        if self.beside is not None:
            self.wrapper = self.piece(str(self._final_module), FIRST)
            self.empty()
            return
        for manager, builder in self.passes(self._codegen):
            with self._recorded_timings.record("Module passes", builder):
                manager.run(self._final_module, builder)
            dispose(manager)

    def empty(self) -> None:
        """Replace the function's module by an empty one: its code is compiled elsewhere."""
        name, self._final_module = (self._final_module.name,
                                    binding.parse_assembly(
                                        f'target triple = "{self._final_module.triple}"\n'))
        self._final_module.name, self._final_module.data_layout = name, self._codegen._data_layout

    def _finalize_final_module(self):
        if self.wrapper is not None and self.beside is not None:
            self.beside.also(self.wrapper)
        elif self.wrapper is not None:
            self.wrapper.make()
        # before the engine gets any: a link failure would recur with everything
        # compiled later
        if self.pieces:
            self.codes_beside = [*(self.beside.result() if self.beside is not None else ()),
                                 *([self.wrapper.code] if self.wrapper is not None else ())]
        self.begun = None
        super()._finalize_final_module()

    def _finalize_specific(self):
        for piece, code in zip(self.pieces, self.codes_beside):
            self._dynamic_globals += [x.name
                                      for x in piece.symbols.global_variables
                                      if x.name.startswith(DYNAMIC_GLOBALS)]
            self._codegen._engine._load_defined_symbols(piece.symbols)
            hand_over(self._codegen, code)
        super()._finalize_specific()
        for environment in self.environments():
            self._codegen.set_env(environment.env_name, environment)

    def _get_module_for_linking(self):
        if self._shared_module is None and (self.pieces or self.is_direct):
            self._ensure_finalized()
            if self.pieces:
                self._shared_module = self._final_module.clone()
                for piece in self.pieces:
                    self._shared_module.link_in(piece.module())
            else:  # a part
                self._shared_module, *others = map(binding.parse_assembly, self.content())
                for each in others:
                    self._shared_module.link_in(each)
            for function in self._shared_module.functions:
                if (not function.is_declaration
                    and function.linkage in (binding.Linkage.external, binding.Linkage.weak_odr)):
                    function.linkage = "linkonce_odr"
        return super()._get_module_for_linking()

    def serialize_using_object_code(self):
        """Serialise as Numba does, but leave out modules that were split: their code is loaded into
        the engine instead.
        """
        if not self.pieces:
            return super().serialize_using_object_code()
        self._ensure_finalized()
        return self.name, "object", (self._get_compiled_object(), nothing())

    def environments(self) -> list[Environment]:
        """The environments (constants and globals) of functions in the code that use Python
        objects, such as a call of NumPy in `with objmode`.
        """
        names = dict.fromkeys(x.name for module in self.symbols() for x in module.global_variables)
        return [found for found in map(lookup_environment, names) if found is not None]

    def external(self) -> list[str]:
        """The names that the code refers to and does not define."""
        content = [x for module in self.symbols()
                   for x in (*module.functions, *module.global_variables)]
        defined = {x.name for x in content if not x.is_declaration}
        return sorted({x.name
                       for x in content if x.is_declaration and not x.name.startswith("llvm.")}
                      - defined)

    def get_llvm_str(self):
        return "\n".join(map(str, self.modules()))

    def get_asm_str(self):
        return "\n".join(map(self._codegen._tm.emit_assembly, self.modules()))


@functools.cache
def nothing() -> bytes:
    """The bitcode of an empty module."""
    return binding.parse_assembly("").as_bitcode()


def work_by_list() -> None:
    """Set LLVM's option of Note [Machine code of long functions], for the rest of this process."""
    if (may_set_llvm_options() and binding.llvm_version_info[0] in WITH_LIST
        and not hasattr(binding, "s2s_works_by_list")):
        binding.set_option("s2s", f"-cgpp-huge-func={BLOCKS}")
        binding.s2s_works_by_list = True  # setting it twice would abort the process


_module_texts: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by module


def module_text(library) -> str:
    """The text of a library's module, cached: most are linked into everything that is compiled."""
    module = library._get_module_for_linking()
    if module not in _module_texts:
        _module_texts[module] = str(module)
    return _module_texts[module]


class LinkedLibrary(Library):
    """The library of a function called only by native code.  Note [Functions that native code alone
    calls]
    """

    is_part = True

    def finalize(self):
        if not self.is_direct:
            super().finalize()
        self._finalized = True

    def _optimize_final_module(self):
        """Skipped: the calling library optimises it."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


def calls_itself(function: FunctionType) -> bool:
    """Whether a compiled function is (mutually) recursive: it is then called through its address.
    """
    seen, ahead = set(), [function]
    while ahead:
        each = ahead.pop()
        for name in each.__code__.co_names:
            called = getattr(each.__globals__.get(name), "py_func", None)
            if called is function:
                return True
            if isinstance(called, FunctionType) and called not in seen:
                seen.add(called)
                ahead.append(called)
    return False


@contextmanager
def at_level(level: int, joins_lines: bool = False) -> Iterator[None]:
    """Context manager: run LLVM's passes at `level`, or NUMBA_OPT if that is lower; with SLP
    vectorisation if it `joins_lines`.
    """
    before = config.OPT, config.SLP_VECTORIZE
    config.OPT, config.SLP_VECTORIZE = (type(config.OPT)(min(level, config.OPT)),
                                        int(joins_lines or config.SLP_VECTORIZE))
    try:
        yield
    finally:
        config.OPT, config.SLP_VECTORIZE = before


def instructions(module) -> int:
    """The number of instructions in the functions of an LLVM module, counted as lines of text,
    which is faster than asking LLVM.
    """
    return str(module).count(INSTRUCTION)
