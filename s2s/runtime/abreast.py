"""LLVM's work on a function in two threads: on what Numba calls from Python, and on the function.

    the module of a function          a thread of its own               this one
    f                                 f                                 what Python calls f through
    what Python calls f through       math that is written inside f     memory, products, errors: what is called, and never inside f
    what both call                                                      parts of loops, whichever half has less to do

What is passed through LLVM takes half of a first call, and the function that takes arguments from Python and gives results to it a third
of that for a small program.  Numba never writes f inside it, so that nothing is lost where they are two modules; nor where
functions of a module lie apart that are only called, or whose address is taken.  LLVM lets several threads work if each has its own context.
llvmlite does not: one lock stands around all of its functions.  The two that take long are called past the lock here, on a
context, a machine and passes that no other thread knows; where a version of llvmlite keeps them elsewhere, the lock is held, and the
threads take turns.  The wrapper is written while LLVM is at work on f, for f is ready first.

Considered: a process of its own (30 ms to hand a module over and back, and it has to be there); more than two halves (a function that is
most of a module stays one, and what is left is short); splitting a function (each half would hand the other all that
lives across the cut).

What the thread has made is an object file, which the engine takes beside the other; the cache keeps both.  Its module is kept as
bitcode, for those who link it or want to read it: a context of LLVM's with a module in it takes a megabyte.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import re
import threading
import weakref
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from llvmlite import binding
from llvmlite.binding import ffi
from numba.core import config

LEAST = 150  # lines of a function's half: below, two halves are more work than they save
WRAPPER = 400  # lines that the other half is taken to have, before the wrapper is written
ENTRY = ".entry"  # at the end of the name of what makes a part of a loop (parts.py)
NAME = re.compile(r'@("(?:[^"\\]|\\.)*"|[-\w.$]+)')
LINKAGE = re.compile(r"^define (?:(?:internal|linkonce_odr|linkonce|weak_odr|weak|external) )?")
WHOLE = (" alias ", " ifunc ", " comdat", " personality ", ".numba.unresolved$")  # a module with any of these is left whole: none of it is in code that s2s writes
USED = ("llvm.used", "llvm.compiler.used")


@dataclass
class Pieces:
    """The text of a module, by what it defines."""

    head: list[str] = field(default_factory=list)  # layout, types
    globals: dict[str, str] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    defined: dict[str, str] = field(default_factory=dict)
    tail: list[str] = field(default_factory=list)  # attributes, metadata

    @staticmethod
    def of(text: str) -> Pieces:
        found = Pieces()
        lines = iter(text.splitlines())
        for line in lines:
            if line.startswith("define "):
                body = [line]
                while body[-1] != "}":
                    body.append(next(lines))
                found.defined[NAME.search(line)[1]] = "\n".join(body)
            elif line.startswith("declare "):
                found.declared[NAME.search(line)[1]] = line
            elif line.startswith("@"):
                found.globals[NAME.match(line)[1]] = line
            elif line.startswith(("attributes ", "!")):
                found.tail.append(line)
            elif not line.startswith(";"):
                found.head.append(line)
        return found

    def reached(self, names: Iterable[str], elsewhere: Set[str]) -> set[str]:
        """These names and all that they need, to which what is defined `elsewhere` belongs, but not what that needs."""
        found, ahead = set(), list(names)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                if name not in elsewhere:
                    ahead += NAME.findall(self.defined.get(name) or self.globals.get(name, ""))
        return found

    def apart(self) -> list[str]:
        """The functions that are never written inside others: what is called at some length (outlined.py), and parts of loops (parts.py)."""
        groups = {line.split()[1] for line in self.tail if line.startswith("attributes ") and {"noinline", "optsize"} <= {*line.split()}}
        return [name for name, text in self.defined.items() if is_part(name) or groups.intersection(text.partition("\n")[0].split())]

    def size(self, names: Iterable[str]) -> int:
        """How many lines their functions have."""
        return sum(self.defined[name].count("\n") for name in names if name in self.defined)

    def module(self, names: Iterable[str], elsewhere: Set[str], visible: Set[str]) -> str:
        """The text of a module that has these and what they need; other modules see what is `visible`."""
        needed = self.reached(names, elsewhere)
        lines = [*self.head, *(text for name, text in (*self.globals.items(), *self.declared.items()) if name in needed)]
        for name, text in self.defined.items():
            if name in needed:
                lines.append(declaration(text) if name in elsewhere else shown(text) if name in visible else text)
        return "\n".join([*lines, *self.tail, ""])


def is_part(name: str) -> bool:
    """Whether a function is a part of a loop."""
    return name.endswith((ENTRY, ENTRY + '"'))


def declaration(definition: str) -> str:
    """The line that declares a function."""
    return LINKAGE.sub("declare ", definition.partition("\n")[0]).removesuffix(" {")


def shown(definition: str) -> str:
    """A function, for other modules to see."""
    return LINKAGE.sub(f"define {'weak_odr ' * definition.startswith('define linkonce_odr ')}", definition)


def halves(text: str) -> tuple[str, str, bool] | None:
    """The text of a module as that of two: with the function itself, and with what lies apart from it and what Python calls; None where it stays whole.

    Whether there are loops in the second is said, too.
    """
    if any(word in text for word in WHOLE):
        return None
    pieces = Pieces.of(text)
    apart = pieces.apart()
    roots = [name for name, text in pieces.defined.items() if name not in apart and not text.startswith(("define internal ", "define linkonce_odr "))]
    roots += [name for name in USED if name in pieces.globals]
    alone = {name: pieces.size(pieces.reached([name], {*apart} - {name})) for name in apart}
    own, size, other = [], pieces.size(pieces.reached(roots, {*apart})), WRAPPER
    if size + sum(alone.values()) < LEAST:
        return None
    for name in sorted(apart, key=alone.get, reverse=True):
        if size <= other:
            own, size = [*own, name], size + alone[name]
        else:
            other += alone[name]
    others = [name for name in apart if name not in own]
    return pieces.module([*roots, *own], {*others}, {*apart}), pieces.module(others, {*roots, *own}, {*apart}), any(map(is_part, others))


class Symbol(NamedTuple):
    """A function or a variable of a module."""

    name: str
    is_declaration: bool


@dataclass
class Symbols:
    """Those of a module that is gone, as the module said them."""

    functions: list[Symbol]
    global_variables: list[Symbol]

    @staticmethod
    def of(module: binding.ModuleRef) -> Symbols:
        return Symbols(*([Symbol(x.name, x.is_declaration) for x in each] for each in (module.functions, module.global_variables)))


class Abreast(threading.Thread):
    """A module becomes machine code, in a thread of its own, by these passes of LLVM."""

    bitcode: bytes
    made: binding.ModuleRef

    def __init__(self, text: str, machine: binding.TargetMachine, passes: list):
        super().__init__(name="s2s compiles")
        self.given, self.failed = (text, machine, passes), None
        self.start()

    def run(self) -> None:
        text, machine, passes = self.given
        try:
            module = alone(text)
            for manager, builder in passes:
                past_the_lock("LLVMPY_RunNewModulePassManager")(manager, module, builder)
            self.bitcode = module.as_bitcode()
            self.code = machine_code(machine, module)
            self.made = module
        except BaseException as error:
            self.failed = error
        finally:
            del self.given

    def result(self) -> bytes:
        """The code."""
        self.join()
        if self.failed is not None:
            raise self.failed
        return self.code

    @functools.cached_property
    def symbols(self) -> Symbols:
        """What the code defines and refers to, once it is made.

        Not asked in the thread: after each short call there it would wait for Python, 5 ms where the other is busy.
        """
        found = Symbols.of(self.made)
        del self.made
        return found

    def module(self) -> binding.ModuleRef:
        """The module, once more."""
        return binding.parse_bitcode(self.bitcode)


def alone(text: str) -> binding.ModuleRef:
    """A module in a context of its own, which ends when nothing refers to the module any more, and the module with it.

    Left to themselves, both are ended by the garbage collector if they are part of a cycle, and in any order: the context takes its modules with it, and then
    the module would be ended once more.
    """
    context = binding.create_context()
    module = binding.parse_assembly(text, context=context)
    context._owned = module._owned = True
    weakref.finalize(module, ffi.lib.LLVMPY_ContextDispose, context).atexit = False
    return module


def past_the_lock(name: str):
    """A function of llvmlite's, which other threads do not wait for."""
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


def machine_code(machine: binding.TargetMachine, module: binding.ModuleRef) -> bytes:
    """The object file of a module, made past the lock."""
    with ffi.OutputString() as error:
        buffer = past_the_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def beside(codegen):
    """A code generator like Numba's, with a machine of its own, which takes less than a millisecond: no compilation that failed is still at work with it."""
    options = {"opt": config.OPT}
    codegen._customize_tm_options(options)
    found = copy.copy(codegen)
    found._tm = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(**options)
    return found


def hand_over(codegen, code: bytes) -> None:
    """Give an object file to the engine, which links it with what is compiled next."""
    codegen._engine._ee.add_object_file(binding.ObjectFileRef.from_data(code))
