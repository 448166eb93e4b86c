"""LLVM's work on a function in two threads: on what Numba calls from Python, and on the function, in pieces.

    the module of a function            modules
    f                                   f, and what is written inside of it
    its loops, parts of loops           some loops each, and what is written inside of them          a thread takes these, one after the other, and
    what f and these call at length     with any of these                                            this one does, too, once it has nothing else to do
    what Python calls f through         alone: written, and compiled at the lowest level, here

What is passed through LLVM takes half of a first call, and the function that takes arguments from Python and gives results to it a third
of that for a small program.  Numba never writes f inside it, and runs it once a call, so that nothing is lost where it is a module of its own that LLVM does not look
at twice: it takes a third of the time then.  It is written while LLVM is at work on f.  Nor is anything lost where functions of a module lie
apart that are only called, or whose address is taken: parts of loops (parts.py), loops (direct/extracted.py), memory, products and errors (outlined.py).

LLVM lets several threads work if each has its own context.
llvmlite does not: one lock stands around all of its functions.  So all that is called for a piece is called
past the lock, on a context, a machine and passes that no other thread knows; where a version of llvmlite keeps the functions elsewhere, the lock is held, and the
threads take turns.

Considered: a process of its own (30 ms to hand a module over and back, and it has to be there); a module for each loop (each costs some two
milliseconds, and repeats the math that is written inside of it).

What is made of a piece is an object file, which the engine takes beside the others; the cache keeps all.  Its module is kept as
bitcode, for those who link it or want to read it: a context of LLVM's with a module in it takes a megabyte.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from llvmlite import binding
from llvmlite.binding import ffi
from llvmlite.binding.context import ContextRef
from numba.core import config

LEAST = 150  # lines of a function: below, pieces are more work than they save
PIECE, SMALL = 300, 80  # lines of a piece, or so, and of one that is worth making
INLINED = "alwaysinline"
ENTRY = ".entry"  # at the end of the name of what makes a part of a loop (parts.py)
LOOP = ".loop"  # and of a loop that is a function (direct/extracted.py); LLVM appends numbers
LOOPS = re.compile(rf"(?:{re.escape(ENTRY)}|{re.escape(LOOP)})[.\d]*\"?$")
NAME = re.compile(r'@("(?:[^"\\]|\\.)*"|[-\w.$]+)')
LINKAGE = re.compile(r"^define (?:(?:internal|linkonce_odr|linkonce|weak_odr|weak|external) )?")
WHOLE = (" alias ", " ifunc ", "@llvm.used", " comdat", " personality ", ".numba.unresolved$")  # a module with any of these is left whole: none of it is in code that s2s writes
BY_NAME = "s2s_"  # functions that say the same wherever they have the same name (outlined.py, boxes.py)
BY_CONTENT = ".const.pickle"  # names of Numba's that end with a hash
QUOTED = re.compile(r'@"([-a-zA-Z$._][-\w$.]*)"')  # a name that needs no quotes
NUMBERED = re.compile(r'("(?:[^"\\]|\\.)*"|[!#])(?:(?<=[!#])(\d+)\b)?')  # metadata and groups of attributes, outside of quotes
USED = "@llvm.compiler.used"
GROUP = re.compile(r"#\d+")  # of attributes
VARIANTS = "vector-function-abi-variant"
VARIANT = re.compile(r"\((\w+)\)")
SAID = re.compile(rf'"{VARIANTS}"="([^"]*)"')
LABEL, TO = re.compile(r'^("(?:[^"\\]|\\.)*"|[-\w$.]+):'), re.compile(r'label %("(?:[^"\\]|\\.)*"|[-\w$.]+)')
SHORT = 1e-4  # seconds after which a thread that wants to may run Python


class Unlike(ValueError):
    """Modules that are not put together as texts: no code that s2s writes is such."""


@dataclass
class Pieces:
    """The text of a module, or of several that are linked, by what it defines."""

    head: list[str] = field(default_factory=list)  # layout, types
    globals: dict[str, str] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    defined: dict[str, str] = field(default_factory=dict)
    tail: list[str] = field(default_factory=list)  # attributes, metadata
    groups: dict[str, list[str]] = field(default_factory=dict)  # of attributes
    variants: dict[str, list[str]] = field(default_factory=dict)  # functions of vectors, which a call with these attributes may become
    used: list[str] = field(default_factory=list)  # what stays, though nothing refers to it yet
    numbers: int = 0  # of metadata and of groups of attributes

    @staticmethod
    def of(*texts: str) -> Pieces:
        """The first of these, with what the others define for it."""
        found = Pieces()
        for k, text in enumerate(texts):
            found.add(text, is_linked=k > 0)
        return found

    def add(self, text: str, is_linked: bool) -> None:
        """What this text says, too; where the module is linked, others may define the same."""
        if any(word in text for word in WHOLE):
            raise Unlike
        text = QUOTED.sub(r"@\1", text)
        first, numbers = self.numbers, [self.numbers - 1]

        def numbered(match: re.Match) -> str:
            if match[2] is None:
                return match[0]
            numbers.append(first + int(match[2]))
            return f"{match[1]}{numbers[-1]}"

        lines = iter(text.splitlines())
        for line in lines:
            if line.startswith("define "):
                body = [line]
                while body[-1] != "}":
                    body.append(next(lines))
                if body[1] == "{":  # as llvmlite writes it
                    body[:2] = [f"{line} {{"]
                name = NAME.search(line)[1]
                if is_linked and LINKAGE.match(line)[0] == "define ":
                    body[0] = f"define linkonce_odr {line[len('define '):]} {{" if not line.endswith("{") else f"define linkonce_odr {line[len('define '):]}"
                said = "\n".join(body)
                if name not in self.defined:
                    self.defined[name] = NUMBERED.sub(numbered, said)
                elif not name.startswith(BY_NAME) and "define internal" in (said[:15], self.defined[name][:15]):
                    raise Unlike
            elif line.startswith("declare "):
                self.declared.setdefault(NAME.search(line)[1], NUMBERED.sub(numbered, line))
            elif line.startswith(USED):
                self.used += [name for name in NAME.findall(line)[1:] if name not in self.used]
            elif line.startswith("@"):
                name = NAME.match(line)[1]
                before = self.globals.setdefault(name, line)
                if " external " in before:
                    self.globals[name] = line
                elif " external " not in line and before.lower() != line.lower() and not name.startswith(BY_CONTENT) and not (" common " in before and " common " in line):
                    raise Unlike
            elif line.startswith(("attributes ", "!")):
                line = NUMBERED.sub(numbered, line)
                self.tail.append(line)
                if line.startswith("attributes "):
                    self.groups[line.split()[1]] = line.split()
                if VARIANTS in line:
                    self.variants[line.split()[1]] = VARIANT.findall(line)
            elif not line.startswith((";", "source_filename")) and line not in self.head:
                self.head.append(line)
        self.numbers = max(numbers) + 1

    def lines(self) -> int:
        return sum(text.count("\n") for text in self.defined.values())

    def reached(self, names: Iterable[str], elsewhere: Set[str]) -> set[str]:
        """These names and all that they need, to which what is defined `elsewhere` belongs, but not what that needs."""
        found, ahead = set(), list(names)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                if name not in elsewhere:
                    text = self.defined.get(name) or self.globals.get(name, "")
                    ahead += NAME.findall(text)
                    for group in {*GROUP.findall(text)} & self.variants.keys():
                        ahead += self.variants[group]
                    for said in SAID.findall(text) if VARIANTS in text else ():
                        ahead += VARIANT.findall(said)
        return found

    def is_apart(self, name: str) -> bool:
        """Whether a function is never written inside others: what is called at some length (outlined.py), and parts of loops (parts.py)."""
        return is_part(name) or {"noinline", "optsize"} <= self.attributes(name)

    def attributes(self, name: str) -> set[str]:
        """The words that are said of a function, there or in a group."""
        words = {*self.defined[name].partition("\n")[0].split()}
        return words.union(*(self.groups[word] for word in words & self.groups.keys()))

    def outside(self) -> list[str]:
        """The functions that other modules call."""
        return [name for name, text in self.defined.items() if not text.startswith(("define internal ", "define linkonce_odr "))]

    def sizes(self) -> dict[str, int]:
        """How many lines each function has, with all that is written inside it."""
        found: dict[str, int] = {}

        def size(name: str) -> int:
            if name not in found:
                found[name] = 0  # of what calls itself
                head, _, body = self.defined[name].partition("\n")
                found[name] = body.count("\n") + sum(size(each) for each in NAME.findall(body) if each in inside)
            return found[name]

        inside = {name for name in self.defined if INLINED in self.attributes(name)}
        return {name: size(name) for name in self.defined}

    def module(self, names: Iterable[str], elsewhere: Set[str] = frozenset(), visible: Set[str] = frozenset()) -> str:
        """The text of a module that has these and what they need; other modules see what is `visible`."""
        needed = self.reached(names, elsewhere)
        lines = [*self.head, *(text for name, text in self.globals.items() if name in needed),
                 *(text for name, text in self.declared.items() if name in needed and name not in self.defined)]
        for name, text in self.defined.items():
            if name in needed:
                lines.append(declaration(text) if name in elsewhere else shown(text) if name in visible else text)
        used = [name for name in self.used if name in needed]
        if used:
            lines.append(f'{USED} = appending global [{len(used)} x ptr] [{", ".join(f"ptr @{name}" for name in used)}], section "llvm.metadata"')
        return "\n".join([*lines, *self.tail, ""])


def has_loops(definition: str) -> bool:
    """Whether a function goes back to where it has been."""
    seen = set()
    for line in definition.splitlines():
        if label := LABEL.match(line):
            seen.add(label[1].strip('"'))
        elif any(label.strip('"') in seen for label in TO.findall(line)):
            return True
    return False


def is_part(name: str) -> bool:
    """Whether a function is a loop, or a part of one."""
    return LOOPS.search(name) is not None


def declaration(definition: str) -> str:
    """The line that declares a function."""
    return LINKAGE.sub("declare ", definition.partition("\n")[0]).removesuffix(" {")


def shown(definition: str) -> str:
    """A function, for other modules to see."""
    return LINKAGE.sub(f"define {'weak_odr ' * definition.startswith('define linkonce_odr ')}", definition)


def in_pieces(pieces: Pieces, is_bare: bool = False) -> tuple[list[str], list[str]] | None:
    """A module as the texts of several, and the functions that are in none; None where it is short.

    Those are what is left of a function that `is_bare`, once its loops are elsewhere, and what is called at some length, for memory and products.
    """
    apart, sizes = [name for name in pieces.defined if pieces.is_apart(name)], pieces.sizes()
    roots = [name for name in pieces.outside() if name not in apart]
    needed = pieces.reached(roots, set()).intersection(sizes)
    apart = [name for name in apart if name in needed]

    def size(names: Iterable[str]) -> int:
        return sum(sizes[each] for each in pieces.reached(names, {*apart} - {*names}).intersection(sizes) - ({*apart} - {*names}))

    own, alone = size(roots), {name: size([name]) for name in apart}
    whole = own + sum(alone.values())
    if whole < LEAST:
        return None
    most = min(PIECE, max(whole // 2, SMALL))
    left = [*roots, *(name for name in apart if not is_part(name) and not has_loops(pieces.defined[name]))] if is_bare else []
    groups = [([*roots], own)] if not left else [([], 0)]
    for name in sorted((name for name in apart if name not in left), key=alone.get, reverse=True):  # which has to fit where there is least
        least = min(range(len(groups)), key=lambda k: groups[k][1])
        names, lines = groups[least]
        if lines + alone[name] <= most:
            groups[least] = [*names, name], lines + alone[name]
        else:
            groups.append(([name], alone[name]))
    groups.sort(key=lambda group: -group[1])
    return [pieces.module(names, {*roots, *apart} - {*names}, {*apart}) for names, _ in groups if names], left


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


class Piece:
    """A module that becomes machine code by these passes of LLVM, after those `before` of each function; `code`, once it has."""

    def __init__(self, text: str, machine: binding.TargetMachine, passes: list, before: tuple | None = None):
        self.given = text, machine, passes, before

    def make(self) -> None:
        text, machine, passes, before = self.given
        try:
            module = alone(text)
            if before is not None:
                manager, builder = before
                for function in functions_of(module):
                    past_the_lock("LLVMPY_RunNewFunctionPassManager")(manager, function, builder)
            for manager, builder in passes:
                past_the_lock("LLVMPY_RunNewModulePassManager")(manager, module, builder)
            self.bitcode = bitcode(module)
            self.code = machine_code(machine, module)
            self.made = module
        finally:
            del self.given

    @functools.cached_property
    def symbols(self) -> Symbols:
        """What the code defines and refers to, once it is made.

        Not asked where it is made: after each short call there a thread would wait for Python while the other is busy.
        """
        found = Symbols.of(self.made)
        del self.made
        return found

    def module(self) -> binding.ModuleRef:
        """The module, once more."""
        return binding.parse_bitcode(self.bitcode)


class Abreast(threading.Thread):
    """Pieces become machine code, in a thread of its own."""

    def __init__(self, pieces: list[Piece]):
        super().__init__(name="s2s compiles")
        self.pieces, self.waiting, self.failed = pieces, deque(pieces), None
        self.interval = sys.getswitchinterval()
        sys.setswitchinterval(SHORT)  # or it waits for Python, 5 ms each time that LLVM has done something
        self.start()

    def run(self) -> None:
        try:
            self.work()
        finally:
            sys.setswitchinterval(self.interval)

    def work(self) -> None:
        """Make what is left to be made."""
        try:
            while self.waiting and self.failed is None:
                try:
                    piece = self.waiting.popleft()
                except IndexError:  # the other thread has taken it
                    break
                piece.make()
        except BaseException as error:
            self.failed = error

    def result(self) -> list[bytes]:
        """The code of all."""
        self.work()
        self.join()
        if self.failed is not None:
            raise self.failed
        return [piece.code for piece in self.pieces]


def alone(text: str) -> binding.ModuleRef:
    """A module in a context of its own, which ends when nothing refers to the module any more, and the module with it.

    Left to themselves, both are ended by the garbage collector if they are part of a cycle, and in any order: the context takes its modules with it, and then
    the module would be ended once more.
    """
    context = ContextRef(past_the_lock("LLVMPY_ContextCreate")())
    with said() as error:
        module = binding.ModuleRef(past_the_lock("LLVMPY_ParseAssembly")(context, text.encode(), ctypes.byref(error)), context)
        context._owned = module._owned = True
        weakref.finalize(module, ffi.lib.LLVMPY_ContextDispose, context).atexit = False
        if error:
            raise RuntimeError(f"LLVM IR parsing error: {error.value.decode()}")
    with said() as error:
        if past_the_lock("LLVMPY_VerifyModule")(module, ctypes.byref(error)):
            raise RuntimeError(error.value.decode())
    return module


def functions_of(module: binding.ModuleRef) -> Iterator[ctypes.c_void_p]:
    """The functions that a module defines."""
    functions = past_the_lock("LLVMPY_ModuleFunctionsIter")(module)
    try:
        while function := past_the_lock("LLVMPY_FunctionsIterNext")(functions):
            if not past_the_lock("LLVMPY_IsDeclaration")(function):
                yield function
    finally:
        past_the_lock("LLVMPY_DisposeFunctionsIter")(functions)


@contextmanager
def said() -> Iterator[ctypes.c_char_p]:
    """A text that LLVM may make, and that is given back to it."""
    text = ctypes.c_char_p()
    try:
        yield text
    finally:
        if text:
            past_the_lock("LLVMPY_DisposeString")(text)


def past_the_lock(name: str):
    """A function of llvmlite's, which other threads do not wait for."""
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


def bitcode(module: binding.ModuleRef) -> bytes:
    """A module as bytes."""
    size = ctypes.c_size_t()
    with said() as text:
        past_the_lock("LLVMPY_WriteBitcodeToString")(module, ctypes.byref(text), ctypes.byref(size))
        return ctypes.string_at(text, size.value)


def machine_code(machine: binding.TargetMachine, module: binding.ModuleRef) -> bytes:
    """The object file of a module."""
    with said() as error:
        buffer = past_the_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, ctypes.byref(error))
        if not buffer:
            raise RuntimeError(error.value.decode())
    try:
        return ctypes.string_at(past_the_lock("LLVMPY_GetBufferStart")(buffer), past_the_lock("LLVMPY_GetBufferSize")(buffer))
    finally:
        past_the_lock("LLVMPY_DisposeMemoryBuffer")(buffer)


def beside(codegen, level: int | None = None):
    """A code generator like Numba's, with a machine of its own, at this level; it takes less than a millisecond."""
    options = {"opt": config.OPT if level is None else level}
    codegen._customize_tm_options(options)
    found = copy.copy(codegen)
    found._tm = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(**options)
    return found


def hand_over(codegen, code: bytes) -> None:
    """Give an object file to the engine, which links it with what is compiled next."""
    codegen._engine._ee.add_object_file(binding.ObjectFileRef.from_data(code))
