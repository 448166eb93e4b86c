"""On-disk store of facts about programs whose native code is cached: s2s/persist says which
programs, and why that is sound.

An entry is written and trusted as machine code is (machine_code.py, Note [Who may write here], Note
[Torn entries]).
"""

from __future__ import annotations

import copyreg
import hashlib
import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ...back.print.printer import Module
from ...ir.graph import Function, Recalled, walk
from ...ops.program.effects import acts_outside
from ...ops.program.outside_writes import write_outside
from ...ops.program.recursive_callee import recursive_callees
from ..entry.length_versions import much
from . import machine_code as disk

SEVERAL = 4  # programs of one key, the latest first
USED = ("gast", "astunparse", "scipy")


@cache
def versions() -> str:
    """The versions that generated code depends on: hashes of the files of s2s, because a checkout
    changes without a version.
    """
    whole = [disk.digest()]
    for name in USED:
        try:
            whole.append(f"{name} {disk.importlib.metadata.version(name)}")
        except disk.importlib.metadata.PackageNotFoundError:
            pass
    return "\n".join([*whole, disk.versions()])


@dataclass(frozen=True)
class Facts:
    """Properties of a function's ops that compilation needs before lowering to loops."""

    acts: bool  # it prints, or writes into what was captured
    much: int | None  # (runtime/entry/length_versions.py)


def facts_of(function: Function) -> Facts | None:
    """The facts of a function; None where its machine code is not cached
    (runtime/call/native_function.py says why).
    """
    if (recursive_callees(function)
        or any(op.record is write_outside for op in walk(function.block))):
        return None
    return Facts(acts_outside(function), much(function))


class Pickler(pickle.Pickler):
    """A pickler that stores modules by name: they are arguments of programs written for several
    array libraries.
    """

    dispatch_table = (copyreg.dispatch_table
                      | {ModuleType: lambda module: (import_module, (module.__name__,))})


def in_bytes(x) -> bytes:
    file = io.BytesIO()
    Pickler(file).dump(x)
    return file.getvalue()


class StoredPrograms:
    """The stored programs of one key."""

    def __init__(self, folder: Path, stem: str, key: str):
        self.folder, self.stem, self.key = folder, stem, key
        self.entries = []
        content = disk.read(self.path)
        if content is not None:
            try:
                self.entries = list(pickle.loads(content))
            except Exception:  # whatever is wrong with the entry, it is written again
                self.entries = []

    @staticmethod
    def of(name: str, said: str) -> StoredPrograms | None:
        """The stored programs of this name and key; None if none can be stored."""
        folder = disk.private_directory()
        if folder is None:
            return None
        return StoredPrograms(folder, name,
                   hashlib.sha256("\0".join([said, versions()]).encode()).hexdigest()[:32])

    @property
    def path(self) -> Path:
        return self.folder / f"{self.stem}-{self.key}.met"

    def program(self, asked: list, flat: Function | Recalled, facts: Facts,
                entry: dict | None = None) -> Program:
        """The stored program for which `asked` held; `entry` is the entry once it is known whether
        it depends on lengths.
        """
        key = hashlib.sha256(f"{self.key}\0{asked!r}".encode()).hexdigest()[:32]
        return Program(self, key, flat, facts, entry)


class Program:
    """The stored facts about the native code of `flat`."""

    def __init__(self, met: StoredPrograms, key: str, flat: Function | Recalled, facts: Facts,
                 entry: dict | None):
        self.met, self.key, self.flat, self.facts, self.entry = met, key, flat, facts, entry

    def save(self, lengths: bool) -> None:
        """Save the facts that were consulted; `lengths`: the code depends on which axes are long.
        """
        if self.entry is not None:
            entry = {**self.entry, "lengths": lengths}
            others = [each for each in self.met.entries if each["asked"] != entry["asked"]]
            try:
                content = in_bytes([entry, *others][:SEVERAL])
            # an object that cannot be pickled, in the type of an argument
            except (pickle.PicklingError, TypeError, AttributeError):
                return
            disk.write(self.met.path, content)

    def path(self, what: tuple) -> Path:
        digest = hashlib.sha256(f"{self.key}{what!r}".encode()).hexdigest()
        return self.met.folder / f"{self.met.stem}-{digest[:32]}.piece"

    def read(self, *what):
        """The stored entry of this kind, or None."""
        content = disk.read(self.path(what))
        try:
            return None if content is None else pickle.loads(content)
        except Exception:
            return None

    def write(self, piece, *what) -> None:
        disk.write(self.path(what), pickle.dumps(piece))


class StoredText:
    """The module text of an earlier process; which line raises which exception is computed from a
    newly generated module, only if needed.
    """

    given: dict = {}

    def __init__(self, text: str, entry: str, has_raises: bool, make: Callable[[], Module]):
        self.text, self.entry, self.has_raises, self.make = text, entry, has_raises, make

    @property
    def raises(self) -> dict:
        made = self.make() if self.has_raises else None
        return made.raises if made is not None and made.text == self.text else {}
