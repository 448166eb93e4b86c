"""Marker calls for the end of a `with`; front/values/context_managers.py defines each."""

from __future__ import annotations


def leave(manager):
    """Call `manager.__exit__(None, None, None)`."""
