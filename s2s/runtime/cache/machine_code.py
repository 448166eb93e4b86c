"""On-disk cache of machine code, which the next process loads instead of compiling.

    <cache>/<name>-<key>.py            the generated text, for readers and debuggers; never executed
    <cache>/<name>-<key>-<sig>.code    one compiled signature

The key is a hash of the text, the options and all versions that machine code depends on, the CPU
included, so an entry is never out of date: another version has another key. s2s itself enters by a
hash of the files of its runtime, because a checkout changes without a version: they decide how the
text becomes machine code, and everything else is in the text.

Note [Who may write here]
Loading machine code executes it, and unpickling can execute anything.  So the directory is made for
its user alone, and a directory or entry that belongs to somebody else, that others could write to,
or that is a symbolic link, is not touched: the cache is then off, with one warning that says why.

Note [Torn entries]
An entry is written under another name and then renamed, so no process sees half of one, and of
several processes that write the same entry the last wins, with the same content.  An entry starts
with its own hash; one that a full disk or a crash has damaged does not match, and is compiled again
and replaced.

Note [Without the registries]
Before Numba compiles or loads anything it imports the registries of all that it can compile,
SciPy's linear algebra included: 0.3 of the 0.4 seconds of a first call from the cache. Machine code
only needs symbols that these imports define, such as Python's hash secret. So an entry lists its
external symbols, and the registries are imported only if one of them is unknown. (Compiling imports
them in any case.)
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import pickle
import platform
import stat
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numba
import numpy as np
from llvmlite import binding

from ..debug import sanitizer
from ..intrinsics import boxing, complex_math
from ..kernels import lapack_routines, scipy_special
from ..llvm.parallel_codegen import Symbols, hand_over
from ..llvm.program_engine import codegen_of, with_codegen
from ..numba_internals import Cache, CompileResult, dumps, rtsys

ROOT = Path(__file__).parent.parent.parent
MAGIC = b"s2s machine code 4\n"
_warned: set[str] = set()


class CacheWarning(UserWarning):
    """Warning that the on-disk cache is off, with the reason."""


def directory() -> Path:
    """This user's cache directory: S2S_CACHE_DIR, or the platform's default."""
    chosen = os.environ.get("S2S_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "s2s"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "s2s" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "s2s"


def private_directory() -> Path | None:
    """The cache directory, created if needed; None, with a warning, if it is not this user's alone.
    """
    path = directory()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = distrust(path)
    except OSError as error:
        problem = str(error)
    if problem is None:
        return path
    if str(path) not in _warned:
        _warned.add(str(path))
        warnings.warn(f"compiled code is not kept in {path}: {problem}. "
                      "Set S2S_CACHE_DIR to a directory of your own, or pass cache=False",
                      CacheWarning, stacklevel=2)
    return None


def distrust(path: Path) -> str | None:
    """The reason why others may have written to `path`, or None.  See Note [Who may write here]."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            return "it belongs to another user"
        if status.st_mode & 0o022:
            return "others may write to it"
    return None


def own_version() -> str:
    """The installed version of s2s; a checkout that is not installed has none."""
    try:
        return importlib.metadata.version("s2s")
    except importlib.metadata.PackageNotFoundError:
        return "of a checkout"


@cache
def own_files() -> dict[str, bytes]:
    """Hashes of the source files of s2s by relative path, read once per process."""
    found = {}
    root = os.path.join(ROOT, "")
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                with open(path, "rb", buffering=0) as file:
                    found[path[len(root):]] = hashlib.sha256(file.read()).digest()
    return found


def digest(*folders: str) -> str:
    """A hash of the source files of s2s in these folders, or of all of them."""
    whole = hashlib.sha256()
    for place, said in own_files().items():
        if not folders or place.partition(os.sep)[0] in folders:
            whole.update(f"{place}\0".encode() + said)
    return whole.hexdigest()


@cache
def versions() -> str:
    """The versions of everything but the program that determines the machine code."""
    features = binding.get_host_cpu_features()
    cpu = f"{binding.get_host_cpu_name()} {features.flatten() if features else ''}"
    tuned = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    return "\n".join([f"s2s {own_version()} {digest('runtime')}", f"numba {numba.__version__}",
                      f"llvm {binding.llvm_version_info}", f"numpy {np.__version__}", sys.version,
                      platform.platform(), cpu, repr(tuned)])


def key_of(text: str, options: str) -> str:
    """The cache key of this program."""
    return hashlib.sha256("\0".join([text, options, versions()]).encode()).hexdigest()[:32]


def read(path: Path) -> bytes | None:
    """The content of an entry, or None if it is missing, damaged or written by somebody else."""
    try:
        handle = os.open(path,
                         os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)  # of the opened file, not of a later one with that name
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return None
        content = file.read()
    head = len(MAGIC) + 32
    if (not content.startswith(MAGIC)
        or hashlib.sha256(content[head:]).digest() != content[len(MAGIC):head]):
        return None
    return content[head:]


def write(path: Path, content: bytes, plain: bool = False) -> None:
    """Write an entry atomically; a failing disk only costs a compilation later."""
    name = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
        with os.fdopen(handle, "wb") as file:
            file.write(content if plain else MAGIC + hashlib.sha256(content).digest() + content)
        os.replace(name, path)
    except OSError:
        if name is not None and os.path.exists(name):
            os.unlink(name)


def entry_of(result: CompileResult) -> int:
    """The address of the wrapper that Python calls, or 0 if the engine has no code for it (it is
    called all the same).
    """
    return result.library.get_pointer_to_function(result.fndesc.llvm_cpython_wrapper_name)


class DiskCache(Cache):
    """The on-disk cache that a Numba dispatcher consults before it compiles; it loads code into the
    engine of the module whose globals are `scope`.
    """

    def __init__(self, folder: Path, stem: str, scope: dict):
        self.folder, self.stem, self.scope, self.enabled = folder, stem, scope, True

    @property
    def cache_path(self) -> str:
        return str(self.folder)

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    def flush(self) -> None:
        for path in self.folder.glob(f"{self.stem}-*.code"):
            path.unlink(missing_ok=True)

    def path_of(self, signature) -> Path:
        """The path of the entry of one signature."""
        return (self.folder
                / f"{self.stem}-{hashlib.sha256(str(signature).encode()).hexdigest()[:16]}.code")

    def load_overload(self, signature, target_context):
        """The compiled code for `signature`, or None."""
        content = read(self.path_of(signature)) if self.enabled else None
        if content is None:
            return None
        try:
            external, parts, codes, defined = pickle.loads(content)
            rtsys.initialize(target_context)
            complex_math.provide(external)
            lapack_routines.provide(external)
            scipy_special.provide(external)
            sanitizer.provide(external)
            boxing.is_known()  # by name
            if not all(map(binding.address_of_symbol, external)):
                target_context.refresh()
            codegen = codegen_of(self.scope, target_context.codegen())
            engine = codegen._engine
            if not all(binding.address_of_symbol(name) or engine.is_symbol_defined(name)
                       for name in external):
                return None  # an external symbol is undefined, and linking would abort the process
            for code in codes:
                hand_over(codegen, code)
            engine._load_defined_symbols(defined)
            found = CompileResult._rebuild(with_codegen(target_context, codegen), *parts)
            return found if entry_of(found) else None
        except Exception:  # whatever is wrong with the entry, it is compiled again
            return None

    def save_overload(self, signature, result) -> None:
        """Save compiled code, unless it holds addresses of this process."""
        if (not self.enabled or result.library.has_dynamic_globals
            or any(not x.can_cache for x in result.lifted)):
            return
        library = result.library
        defined = Symbols([x for piece in library.pieces for x in piece.symbols.functions],
                          [x for piece in library.pieces for x in piece.symbols.global_variables])
        # the last item: the environments that Numba finds, only in its own module
        *parts, _ = result._reduce()
        write(self.path_of(signature),
              dumps((library.external(), (*parts, library.environments()), library.codes_beside,
                     defined)))
