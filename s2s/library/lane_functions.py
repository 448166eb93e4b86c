"""Collectives that are composed of others."""

from __future__ import annotations

from .declarations import implements


def move_lanes(x, axis_name, sources, targets):
    """`x` of another lane: lane targets[k] gets what lane sources[k] has, and zeros where nothing
    arrives: an op.
    """
    raise NameError(f"unbound axis name {axis_name!r}")


@implements("s2s.ops.program.collectives:ppermute")
def ppermute(x, axis_name, perm):
    """s2s.lax.ppermute."""
    return move_lanes(x, axis_name, [_source for _source, _ in perm], [_to for _, _to in perm])
