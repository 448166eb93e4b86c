"""Marker calls for the tests that `match` patterns make of their subject;
front/eval/match_patterns.py defines each.
"""

from __future__ import annotations


def is_sequence(subject, count: int, more: bool):
    """Test whether a sequence pattern of `count` members, or of `more`, may match."""


def is_mapping(subject):
    """Test whether a mapping pattern may match."""


def has_key(subject, key):
    """Test whether a mapping has a key."""


def others_of(subject, keys):
    """Return a dict without some of its keys."""


def member(subject, kind, k: int):
    """Return the attribute that the k-th positional pattern of a class is matched against."""
