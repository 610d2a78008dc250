"""Keeps processes apart after a fork: a child cannot share the connections of its parent, and has none of its threads.

Servers such as gunicorn and Celery fork workers that all have the client of their parent.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What begins anew in a child."""

    def begin(self) -> None:
        """Makes locks, threads and all that belongs to one process."""


_forked: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def begin(forked: Forked) -> None:
    """Calls ``begin`` of an object now, and in each child of this process while the object exists."""
    forked.begin()
    _forked.add(forked)


def _begin_all() -> None:
    for forked in list(_forked):
        forked.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)
