"""A module of LLVM's in pieces: as the texts of several modules, which are compiled each by itself and linked (parallel_codegen.py).

    the module of a function            modules
    f                                   f, and what is written inside of it
    its loops, parts of loops           some loops each, and what is written inside of them
    what f and these call at length     with any of these

Nothing is lost where functions lie apart that are only called, or whose address is taken: parts of loops (runtime/threads/parallel_for.py), loops (runtime/emit/outline_loops.py), memory, products and
errors (helper_functions.py).  What is written inside of others is in each module whose functions call it.

Texts are what llvmlite writes and LLVM reads, so modules that are linked are put together as texts, too: for LLVM to read, link and print them took as long as to make them.
A text that says what generated code never does is left to LLVM.

Considered: a module for each loop (each costs some two milliseconds, and repeats the math that is written inside of it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

LEAST = 150  # lines of a function: below, pieces are more work than they save
PIECE, SMALL = 300, 80  # lines of a piece, or so, and of one that is worth making
INLINED = "alwaysinline"
ENTRY = ".entry"  # at the end of the name of what makes a part of a loop (runtime/threads/parallel_for.py)
LOOP = ".loop"  # and of a loop that is a function (runtime/emit/outline_loops.py); LLVM appends numbers
LOOPS = re.compile(rf"(?:{re.escape(ENTRY)}|{re.escape(LOOP)})[.\d]*\"?$")
NAME = re.compile(r'@("(?:[^"\\]|\\.)*"|[-\w.$]+)')
LINKAGE = re.compile(r"^define (?:(?:internal|linkonce_odr|linkonce|weak_odr|weak|external) )?")
WHOLE = (" alias ", " ifunc ", "@llvm.used", " comdat", " personality ", ".numba.unresolved$")  # a module with any of these is left whole: none of it is in code that s2s writes
BY_NAME = "s2s_"  # functions that say the same wherever they have the same name (helper_functions.py, runtime/intrinsics/boxing.py)
NUMBAS = "NRT_"  # functions of Numba's runtime, which go back to where they have been, but not round and round
BY_CONTENT = ".const.pickle"  # names of Numba's that end with a hash
QUOTED = re.compile(r'@"([-a-zA-Z$._][-\w$.]*)"')  # a name that needs no quotes
NUMBERED = re.compile(r'("(?:[^"\\]|\\.)*"|[!#])(?:(?<=[!#])(\d+)\b)?')  # metadata and groups of attributes, outside of quotes
OWN = re.compile(r"^@([-\w.$]+) = (?:internal|private) (?:\w+ )*?global ")  # variables that no other module sees
USED = "@llvm.compiler.used"
GROUP = re.compile(r"#\d+")  # of attributes
VARIANTS = "vector-function-abi-variant"
VARIANT = re.compile(r"\((\w+)\)")
SAID = re.compile(rf'"{VARIANTS}"="([^"]*)"')
LABEL, TO = re.compile(r'^("(?:[^"\\]|\\.)*"|[-\w$.]+):'), re.compile(r'label %("(?:[^"\\]|\\.)*"|[-\w$.]+)')


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
        """What this text says, too; where the module is linked, others may define the same.  Raises Unlike where that is LLVM's to do."""
        if any(word in text for word in WHOLE):
            raise Unlike
        text = QUOTED.sub(r"@\1", text)
        for name in [match[1] for line in text.splitlines() if line.startswith("@") and (match := OWN.match(line))]:
            if name in self.globals:  # each module has a variable of its own
                text = re.sub(rf"@{re.escape(name)}(?![-\w$.])", f"@{name}.{len(self.globals)}", text)
        first, numbers = self.numbers, [self.numbers - 1]

        def numbered(match: re.Match) -> str:
            if match[2] is None:
                return match[0]
            numbers.append(first + int(match[2]))
            return f"{match[1]}{numbers[-1]}"

        def renumbered(line: str) -> str:
            return NUMBERED.sub(numbered, line) if "!" in line or "#" in line else line

        lines = iter(text.splitlines())
        for line in lines:
            if line.startswith("define "):
                body = [line]
                while body[-1] != "}":
                    body.append(next(lines))
                if body[1] == "{":  # as llvmlite writes it
                    body[:2] = [f"{line} {{"]
                name, linkage = NAME.search(line)[1], LINKAGE.match(line)[0]
                if is_linked and linkage == "define ":
                    body[0] = body[0].replace(linkage, "define linkonce_odr ", 1)
                if name not in self.defined:
                    self.defined[name] = "\n".join(map(renumbered, body))
                elif not name.startswith(BY_NAME) and "define internal" in (body[0][:15], self.defined[name][:15]):
                    raise Unlike
            elif line.startswith("declare "):
                self.declared.setdefault(NAME.search(line)[1], renumbered(line))
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
                line = renumbered(line)
                self.tail.append(line)
                if line.startswith("attributes "):
                    self.groups[line.split()[1]] = line.split()
                if VARIANTS in line:
                    self.variants[line.split()[1]] = VARIANT.findall(line)
            elif not line.startswith((";", "source_filename")) and line not in self.head:
                if line.startswith("%") and any(each.startswith(line.partition(" = ")[0] + " = ") for each in self.head):
                    raise Unlike  # two types of one name
                self.head.append(line)
        self.numbers = max(numbers) + 1

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
        """Whether a function is never written inside others: what is called at some length (helper_functions.py), and parts of loops (runtime/threads/parallel_for.py)."""
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


def in_pieces(pieces: Pieces, bare: Set[str] = frozenset()) -> tuple[list[str], list[str]] | None:
    """A module as the texts of several, and the functions that are in none; None where it is short.

    Those are what is left of functions that are `bare`, once their loops are elsewhere, if what others call is, and what is called at some length, for memory and products.
    """
    apart, sizes = [name for name in pieces.defined if pieces.is_apart(name)], pieces.sizes()
    roots = [name for name in pieces.outside() if name not in apart]
    needed = pieces.reached(roots, set()).intersection(sizes)
    apart = [name for name in apart if name in needed]

    def content(names: Iterable[str]) -> set[str]:
        """What a module that has these defines."""
        elsewhere = {*apart} - {*names}
        return pieces.reached(names, elsewhere).intersection(sizes) - elsewhere

    def size(names: Iterable[str]) -> int:
        return sum(map(sizes.get, content(names)))

    def is_left(name: str) -> bool:
        """Whether a function has no loops, nor has what is written inside of it, but for what is bare."""
        return not any(has_loops(pieces.defined[each]) for each in content([name]) - bare if not each.startswith(NUMBAS))

    own, alone = size(roots), {name: size([name]) for name in apart}
    whole = own + sum(alone.values())
    if whole < LEAST:
        return None
    most = min(PIECE, max(whole // 2, SMALL))
    left = [*roots, *filter(is_left, apart)] if bare.issuperset(roots) else []
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
