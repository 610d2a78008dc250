"""Work under a reservation, and under a run: however the block of ``with`` ends, it is settled once."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Type

from .errors import HoldfastError
from .types import Actual, CommitAnswer, Extra, Metadata, ModelUsage, ReserveReply, Run

if TYPE_CHECKING:
    from .client import Holdfast
    from .groups import Runs


class Reservation:
    """A reservation, by ``client.reservation``. The block of ``with`` writes what it used to its members."""

    hold: ReserveReply
    """The answer to the reserve."""
    usage: Optional[ModelUsage] = None
    """The usage as the model reported it. Without any member, the reserved amounts are committed."""
    provider_usage: Optional[Metadata] = None
    """The usage object of the model server, unchanged, in place of ``usage``."""
    actual: Optional[Actual] = None
    """Final amounts in place of those that were held."""
    extra: Optional[Extra] = None
    """Amounts to add to those that were held."""
    cost_cents: Optional[float] = None
    response: Optional[str] = None
    commit: Optional[CommitAnswer] = None
    """After the block: the answer to the commit. None where it failed, or the work was allowed unmetered."""

    def __init__(self, client: Holdfast, asked: Dict[str, Any], wait_seconds: float) -> None:
        self._client = client
        self._asked = asked
        self._wait_seconds = wait_seconds

    @property
    def reservation_id(self) -> Optional[str]:
        """The id of the reservation; None for work that was allowed unmetered."""
        return self.hold.get("reservationId")

    def __enter__(self) -> Reservation:
        self.hold = self._client._reserve_work(self._asked, self._wait_seconds)
        if not self.hold["allowed"]:
            raise refusal_of(self.hold)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.settle()
        else:
            self.fail(kind.__name__)

    async def __aenter__(self) -> Reservation:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        # A task that is canceled settles its work all the same.
        await asyncio.shield(asyncio.to_thread(self.__exit__, kind, error, trace))

    def settle(self, otherwise: Optional[ModelUsage] = None) -> None:
        """Commits. It never raises: finished work is worth more than its commit.

        :param otherwise: committed if the service refuses the usage as invalid, as that of a server with a form of its own
        """
        used = {
            "usage": self.usage,
            "providerUsage": self.provider_usage,
            "actual": self.actual,
            "extra": self.extra,
            "costCents": self.cost_cents,
            "response": self.response,
        }
        given = {name: value for name, value in used.items() if value is not None}
        if self.reservation_id is None:
            self._client._track_unmetered(self._asked, given)
        else:
            others = [] if otherwise is None else [{"usage": otherwise}]
            self.commit = self._client._commit_work(self.reservation_id, given, others)

    def fail(self, error_code: str) -> None:
        """Releases. A release that fails needs no error: the reservation expires by itself."""
        if self.reservation_id is None:
            return
        try:
            self._client.release(self.reservation_id, reason="The work failed", error_code=error_code[:100])
        except HoldfastError:
            pass


class RunScope:
    """A run for the block of ``with``, by ``client.run``."""

    def __init__(self, runs: Runs, create: Callable[[Runs], Run]) -> None:
        self._runs = runs
        self._create = create

    def __enter__(self) -> Run:
        self._run = self._create(self._runs)
        return self._run

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self._runs.end(self._run["runId"], reason="done" if kind is None else "the work failed")
        except HoldfastError:
            pass  # It ends by itself.

    async def __aenter__(self) -> Run:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await asyncio.shield(asyncio.to_thread(self.__exit__, kind, error, trace))


def refusal_of(hold: ReserveReply) -> HoldfastError:
    """The error of work that was refused: its code is the first reason, its text names the limits and when they reset."""
    reasons = hold.get("reasons") or ["limit_reached"]
    code = reasons[0]
    limits = [
        f"\"{group['label']}\"{_reset_of(group.get('resetsAt'))}"
        for group in [
            *hold.get("groups", []),
            *(group for level in hold.get("levels", []) for group in level["groups"]),
        ]
        if "label" in group
    ]
    text = f"Refused: {', '.join(reasons)}" + (f": {', '.join(limits)}" if limits else "")
    after = hold.get("retryAfterMs")
    # A model without a price is a fault of the catalog, not of the user's limits.
    status = 400 if code == "unpriced_model" else 429
    return HoldfastError(code, status, text, hold, None, None if after is None else after / 1000)


def _reset_of(resets_at: Optional[str]) -> str:
    return "" if resets_at is None else f" (resets at {resets_at})"
