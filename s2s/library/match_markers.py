"""What the patterns of `match` ask of their subject, as calls: front/eval/match_patterns.py says
what each means.
"""

from __future__ import annotations


def is_sequence(subject, count: int, more: bool):
    """Whether a sequence pattern of `count` members, or of `more`, may fit."""


def is_mapping(subject):
    """Whether a mapping pattern may fit."""


def has_key(subject, key):
    """Whether a mapping has a key."""


def others_of(subject, keys):
    """A dict without some of its keys."""


def member(subject, kind, k: int):
    """What the k-th positional pattern of a class is matched against."""
