"""Lazy imports, which keep `import s2s` quick by loading Numba and SciPy on first use.

    special = later("scipy.special")        as    import scipy.special as special
    digamma = Named("scipy.special", "digamma")

A program that is differentiated and run in Python never needs Numba, which takes three times as
long to import as NumPy; one that calls a function of SciPy has imported SciPy itself.  `later`
stands at the top of a module, among the imports, and counts as one of them (tests/test_layers.py).

Three other designs were considered.  Imports inside functions hide what a module depends on, and
each function needs its own.  importlib.util.LazyLoader puts the unloaded module into sys.modules,
where any other `import numba` finds it.  A `__getattr__` of a package (PEP 562) delays attribute
accesses to the package, but not the imports among its modules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter


class Later:
    """A module that is imported at its first attribute access; it may be accessed by several
    threads at once.
    """

    def __init__(self, module: str):
        self.__name__ = module

    def __getattr__(self, name: str):
        return getattr(import_module(self.__name__), name)

    def __repr__(self) -> str:
        return f"<{self.__name__}, imported when it is wanted>"


def later(module: str) -> Later:
    """Return the module of this full name, imported at its first attribute access.  Raises
    ImportError then, not now.
    """
    return Later(module)


@dataclass(frozen=True)
class Named:
    """The function `name` of `module`, or of something in it (`norm.logpdf`), imported at its first
    call.
    """

    module: str
    name: str

    def __call__(self, *args, **keywords):
        return self.function(*args, **keywords)

    @property
    def function(self) -> Callable:
        """The function itself."""
        return attrgetter(self.name)(import_module(self.module))


class Meanings(dict):
    """A table keyed by functions; a `Named` key is found as the function it names, once anybody has
    imported its module.

    Before that no caller can hold the function to look it up.
    """

    def __init__(self):
        self.waiting: dict[str, dict[str, object]] = {}  # by module, by name
        # what has been declared, and the keys and meanings of one declaration
        self.declared: list = []
        self.entries: Callable[[object], Iterable[tuple]] = tuple
        self.read = 0  # how many declarations have been entered
        self.declaring: dict[str, str] = {}  # a package, and the module that declares its functions
        self.seen: tuple | None = None  # how many modules and declarations there were last

    def __setitem__(self, key, meaning) -> None:
        self.seen = None
        if isinstance(key, Named):
            self.waiting.setdefault(key.module, {})[key.name] = meaning
        else:
            super().__setitem__(key, meaning)

    def arrive(self) -> bool:
        """Enter what has been declared, and the functions of modules that have been imported, since
        this was last asked; return whether there was anything.  A name that this version of a
        module lacks is left out.
        """
        if (len(sys.modules), len(self.declared)) == self.seen:
            return False
        for package in [each for each in self.declaring if each in sys.modules]:
            import_module(self.declaring.pop(package))
        new = self.declared[self.read:]
        for key, meaning in [entry for each in new for entry in self.entries(each)]:
            self[key] = meaning
        self.read += len(new)
        arrived = [module for module in list(self.waiting) if module in sys.modules]
        for name in arrived:
            # waits until it is complete, if another thread is importing it
            module = import_module(name)
            for each, meaning in self.waiting.get(name, {}).items():
                with suppress(AttributeError):
                    self.setdefault(attrgetter(each)(module), meaning)
        for name in arrived:
            self.waiting.pop(name, None)
        self.seen = len(sys.modules), len(self.declared)
        return bool(new or arrived)

    def __missing__(self, key):
        if not self.arrive() or not dict.__contains__(self, key):
            raise KeyError(key)
        return self[key]

    def __contains__(self, key) -> bool:
        return super().__contains__(key) or (self.arrive() and super().__contains__(key))

    def get(self, key, default=None):
        return self[key] if key in self else default
