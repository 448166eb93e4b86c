"""Assumptions about axis lengths under which code is generated, and whether the code depends on
them.

Note [Long axes]
Of a diffusion `u[1:-1] + k[1:-1] * lap` the two lengths are n - 2 and m - 2, each of which may be 1
where n or m is 3, and then NumPy broadcasts: code for that has a nest of loops for each operation,
and sums cotangents to shapes that only the run knows.  The code for an axis of length 8 or more
need not reckon with it, however many of its first and last six elements a slice leaves out.  It
also knows how long `x[:3]` is, and that np.concatenate((x[:1], x[:-1])) is as long as `x`.  Most
programs never ask; theirs is one code for all lengths but 1, as
Note [Which extents are 1] says.  For those that ask, code is generated once more where an axis is
short.

Three designs were weighed.  A check of lengths before each nest, and both forms of the nest, is
twice the code to compile, and the cotangents' shapes differ from then on.  Specialising to the
coincidence that two arguments have the same length generates new code whenever a matrix is square.
This makes "long" a kind of axis, as "of length 1" is, and costs nothing to programs that do not
depend on it.

Note [Supposed lengths]
Of the gates `z[:n]`, `z[n:2 * n]` of a network each may have length 1, for all that is known before
a call, and so may the halves `y[:n]`, `y[n:]` of a state; so may `z[5:10]`, if `z` is short.
Native code supposes that slices whose bounds do not tell their length have not, where they meet
something of another extent, and asks when it has their lengths: where one is 1 it raises, and code
that supposes nothing is made, and runs (runtime/call/native_function.py).  So it does for u[1:-1]
of short axes, which has length 1 where u has 3: what a test tries on arrays of 5 numbers is half as
long (a flow in a cavity: 549 lines of loops for 1,191).  A recurrent network with long short-term
memory took two thirds of the time so, and half of the loops.  Only native code does so, which has
changed nothing when it raises.

It also assumes equal lengths of arguments that a loop carries in turns: `up, u, un = u, un, up`,
where u came as one and un as the other, or `h = np.tanh(W @ h)`, whose length is the number of rows
of W, and was the number of its columns before (back/arrays/assume_equal_lengths.py).  That is
checked at each call.  Two other designs were weighed.  Agreement of arguments could be a part of
the specialisation key, as lengths of 1 are: everything cached for a function would have to say so,
for the few that depend on it.  Or each trip could check the length of its end state: but then the
bounds checks of indices in the loop could not be hoisted before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

LONG = 8  # the least length of a long axis
SHORT = frozenset({0, *range(2, LONG)})


def is_long(n: int) -> bool:
    """Test whether an axis of this length is long: no slice that leaves out a few elements of it
    has length 1.
    """
    return n >= LONG


@dataclass
class LongAxisUse:
    """Whether the generated code depends on axes being long."""

    about_lengths: bool = False


_asked: ContextVar[LongAxisUse | None] = ContextVar("asked", default=None)


@contextmanager
def tracking_long_axes() -> Iterator[LongAxisUse]:
    """Record dependence on long axes in the object that this context yields, and not outside of it.
    """
    asked = LongAxisUse()
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def depend_on_long_axes() -> None:
    """Record that the code being generated depends on axes being long, or short."""
    asked = _asked.get()
    if asked is not None:
        asked.about_lengths = True


_supposing: ContextVar[bool] = ContextVar("supposing", default=False)


@contextmanager
def assuming_not_one() -> Iterator[None]:
    """Assume inside this context that slices of unknown length do not have length 1.
    Note [Supposed lengths]
    """
    token = _supposing.set(True)
    try:
        yield
    finally:
        _supposing.reset(token)


def is_assuming_not_one() -> bool:
    """Test whether slices of unknown length are assumed not to have length 1."""
    return _supposing.get()


def depends_on_long_axes() -> bool:
    """Test whether the code being generated is for long or for short axes alone.

    Not so of a second half (derive/linear_maps.py), which is compiled when it is first called: what
    it is given the first half has made, and has asked.
    """
    asked = _asked.get()
    return asked is not None and asked.about_lengths
