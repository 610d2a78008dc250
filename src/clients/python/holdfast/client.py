"""The client: every call under ``/api/v1``, typed, retried where that is safe, and never counted twice."""

from __future__ import annotations

import copy
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, cast

from .background import Background, tell
from .decisions import Decisions
from .errors import HoldfastError, invalid_input
from .groups import (
    Accounts,
    Analytics,
    Credits,
    Customers,
    Events,
    Features,
    Plans,
    Refusals,
    Runs,
    Subscriptions,
    TestClock,
    TopUps,
    UserKeys,
    Users,
)
from .reservation import Reservation, RunScope
from .stream import UsageStream
from .together import NAMES, Together
from .transport import MAX_RETRIES, TIMEOUT, CallOptions, Token, Transport
from .types import (
    Actual,
    BatchResult,
    CanUseAnswer,
    CommitAnswer,
    Explanation,
    Extra,
    Fit,
    Metadata,
    ModelUsage,
    Moment,
    OverageList,
    ReserveReply,
    RunInputLimits,
    SpendCap,
    TrackAnswer,
    Usage,
)
from .wire import Call, nullable

OnError = Callable[[HoldfastError, Dict[str, Any]], None]
COMPOSE_TIMEOUT = 90.0
WAIT_PAUSE_MAX = 1.0
KEY_LENGTH_MAX = 200


class Holdfast:
    """A client of one service, with one key. Threads may share it.

    ::

        holdfast = Holdfast(api_key="sk_live_...", base_url="https://holdfast.example.com")
        with holdfast.reservation("user_1", "chat.reply", max_output_tokens=500) as work:
            reply = ask_the_model()
            work.usage = {"inputTokens": reply.input_tokens, "outputTokens": reply.output_tokens}
    """

    def __init__(
        self,
        api_key: str,
        base_url: str,
        timeout: Optional[float] = None,
        max_retries: int = MAX_RETRIES,
        coalesce: bool = True,
        end_user_token: Token = None,
        on_unavailable: str = "refuse",
        on_allowed_unmetered: Optional[OnError] = None,
        on_commit_error: Optional[OnError] = None,
        on_track_error: Optional[OnError] = None,
    ) -> None:
        """
        :param api_key: a secret key (``sk_...``), a read-only one (``rk_...``), a user's (``uk_...``) or a public one (``pk_...``)
        :param base_url: the address of the service, without ``/api``
        :param timeout: the seconds that a reserve or can-use may take in all, by default 2, and one try of another call, by
            default 30 (at least 30 for commits and releases)
        :param max_retries: the most tries after the first one
        :param coalesce: whether calls of many threads are sent together
        :param end_user_token: with a public key the token of the user, or a function that returns a fresh one
        :param on_unavailable: ``"allow"`` lets work begin unmetered while the service is unavailable, and tracks it later
        :param on_allowed_unmetered: called with the error and the work that was allowed without a decision
        :param on_commit_error: called with each commit of finished work that failed: ``reservationId``, ``idempotencyKey``,
            ``isRetried`` and the body
        :param on_track_error: called with each event of ``track_later`` that was not counted
        """
        if on_unavailable not in ("refuse", "allow"):
            raise ValueError('on_unavailable: must be "refuse" or "allow"')
        self._transport = Transport(api_key, base_url, timeout, max_retries, end_user_token)
        self._together = Together(self._transport) if coalesce else None
        self._background = Background(self._transport)
        self._decisions = Decisions(self._send_by, timeout)
        self._allows = on_unavailable == "allow"
        self._on_allowed_unmetered = on_allowed_unmetered
        self._on_commit_error = on_commit_error or _print_commit_error
        self._on_track_error = on_track_error or _print_track_error
        self._options = CallOptions()
        self._make_groups()

    def _make_groups(self) -> None:
        self.accounts = Accounts(self._send)
        """Puts users under organisations and teams."""
        self.analytics = Analytics(self._send)
        """Analytics of people, their consent, export and erasure."""
        self.credits = Credits(self._send)
        """Grants, extends, revokes and lists credits."""
        self.customers = Customers(self._send)
        """Makes one user of several ids."""
        self.events = Events(self._send)
        """Reads metered events."""
        self.features = Features(self._send)
        """Reads the features of users."""
        self.plans = Plans(self._send)
        """Lists the plans on offer."""
        self.refusals = Refusals(self._send)
        """Reads users who hit a limit."""
        self.runs = Runs(self._send)
        """Opens, reads and ends runs: tasks with limits of their own."""
        self.subscriptions = Subscriptions(self._send)
        """Writes and ends subscriptions."""
        self.test_clock = TestClock(self._send)
        """Reads and moves the clock of test mode."""
        self.top_ups = TopUps(self._send)
        """Packs that users buy automatically when their credits run low."""
        self.user_keys = UserKeys(self._send)
        """Creates, lists and revokes keys of users."""
        self.users = Users(self._send)
        """Reads everything about a user."""

    def with_options(
        self,
        *,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
        max_retries: Optional[int] = None,
        request_id: Optional[str] = None,
        end_user_token: Token = None,
    ) -> Holdfast:
        """The same client with options for the calls made on it.

        :param idempotency_key: makes two writes with the same key and input count as one, for 24 hours. By default each call
            has its own key. Give one (your job's id, say) where your own code may repeat the call.
        :param request_id: names the call in the service's log and on errors
        """
        other = copy.copy(self)
        other._options = self._options.with_(
            idempotency_key=idempotency_key,
            timeout=timeout,
            max_retries=max_retries,
            request_id=request_id,
            end_user_token=end_user_token,
        )
        other._make_groups()
        return other

    def __enter__(self) -> Holdfast:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Sends what waits, and closes the connections that are kept. ``with`` does it at its end."""
        self._background.flush()
        self._transport.connections.close()

    def reserve(
        self,
        user_id: str,
        event: str,
        quantity: Optional[float] = None,
        *,
        metadata: Optional[Metadata] = None,
        count: Optional[float] = None,
        input_tokens: Optional[float] = None,
        max_output_tokens: Optional[float] = None,
        input_cost_cents: Optional[float] = None,
        cache_write_tokens: Optional[float] = None,
        cache_write_1h_tokens: Optional[float] = None,
        run_id: Optional[str] = None,
        ttl_seconds: Optional[float] = None,
        prompt: Optional[str] = None,
        fit: Optional[Fit] = None,
        wait_seconds: float = 0,
    ) -> ReserveReply:
        """Sets quota aside before the work. At a limit the answer is ``allowed`` false with reasons, not an error.

        While the service is unavailable it raises, or with ``on_unavailable="allow"`` answers ``allowed`` true without a
        reservation, and tracks the work later.

        :param quantity: for audio and video the seconds; how many is ``count``
        :param fit: makes the call smaller until it is allowed; ``fitted`` of the answer has the model and the tokens
        :param wait_seconds: asks again, for up to 60 s, while rates and concurrency limits alone refuse
        """
        size = _size_body(
            user_id, event, quantity, metadata, count, input_tokens, max_output_tokens, input_cost_cents,
            cache_write_tokens, cache_write_1h_tokens, run_id,
        )  # fmt: skip
        body = {**size, "ttlSeconds": ttl_seconds, "prompt": prompt, "fit": fit}
        answer = self._reserve_work(body, wait_seconds)
        # There will be no commit that says more.
        if answer["allowed"] and "reservationId" not in answer:
            self._track_unmetered(body, {})
        return answer

    def commit(
        self,
        reservation_id: str,
        *,
        usage: Optional[ModelUsage] = None,
        provider_usage: Optional[Metadata] = None,
        actual: Optional[Actual] = None,
        extra: Optional[Extra] = None,
        cost_cents: Optional[float] = None,
        response: Optional[str] = None,
    ) -> CommitAnswer:
        """Charges the usage of the work in place of the reserved amounts; without a usage, the reserved amounts."""
        body = {
            "usage": usage,
            "providerUsage": provider_usage,
            "actual": actual,
            "extra": extra,
            "costCents": cost_cents,
            "response": response,
        }
        return cast(CommitAnswer, self._send(_commit_call(reservation_id, body)))

    def release(
        self,
        reservation_id: str,
        *,
        reason: Optional[str] = None,
        error_code: Optional[str] = None,
        response: Optional[str] = None,
    ) -> None:
        """Gives a reservation back: the work did not happen."""
        body = {
            "reservationId": reservation_id,
            "reason": reason,
            "errorCode": error_code,
            "response": response,
        }
        self._send(Call("POST", "/release", body, timeout_min=TIMEOUT))

    def track(
        self,
        user_id: str,
        event: str,
        quantity: Optional[float] = None,
        *,
        metadata: Optional[Metadata] = None,
        count: Optional[float] = None,
        usage: Optional[ModelUsage] = None,
        provider_usage: Optional[Metadata] = None,
        input_tokens: Optional[float] = None,
        input_cost_cents: Optional[float] = None,
        cost_cents: Optional[float] = None,
        run_id: Optional[str] = None,
        prompt: Optional[str] = None,
        response: Optional[str] = None,
    ) -> TrackAnswer:
        """Charges work in one call, without a reservation. At a limit it raises with ``limit_reached``."""
        body = _track_body(
            user_id, event, quantity, metadata, count, usage, provider_usage, input_tokens, input_cost_cents, cost_cents,
            run_id, prompt, response,
        )  # fmt: skip
        return cast(TrackAnswer, self._send(Call("POST", "/track", body)))

    def track_later(
        self,
        user_id: str,
        event: str,
        quantity: Optional[float] = None,
        *,
        metadata: Optional[Metadata] = None,
        count: Optional[float] = None,
        usage: Optional[ModelUsage] = None,
        provider_usage: Optional[Metadata] = None,
        input_tokens: Optional[float] = None,
        input_cost_cents: Optional[float] = None,
        cost_cents: Optional[float] = None,
        run_id: Optional[str] = None,
        prompt: Optional[str] = None,
        response: Optional[str] = None,
    ) -> None:
        """Queues an event that a thread sends within a second, with up to a hundred others.

        Each event counts once however often it is sent. Errors go to ``on_track_error``. The rest is sent at the end of the
        process, and by ``flush``.
        """
        body = _track_body(
            user_id, event, quantity, metadata, count, usage, provider_usage, input_tokens, input_cost_cents, cost_cents,
            run_id, prompt, response,
        )  # fmt: skip
        self._track_in_background(body, self._options.idempotency_key)

    def track_batch(self, events: List[Dict[str, Any]]) -> List[BatchResult]:
        """Tracks up to 100 events, in the form of the API; answers the result of each."""
        answer = self._send(Call("POST", "/track/batch", {"events": events}))
        return cast(List[BatchResult], answer["results"])

    def flush(self) -> None:
        """Sends every event of ``track_later``, and tries once what waits for the service to be back."""
        self._background.flush()

    def can_use(
        self,
        user_id: str,
        event: str,
        quantity: Optional[float] = None,
        *,
        metadata: Optional[Metadata] = None,
        count: Optional[float] = None,
        input_tokens: Optional[float] = None,
        max_output_tokens: Optional[float] = None,
        input_cost_cents: Optional[float] = None,
        cache_write_tokens: Optional[float] = None,
        cache_write_1h_tokens: Optional[float] = None,
        run_id: Optional[str] = None,
    ) -> CanUseAnswer:
        """Returns what a reserve would answer now, and reserves nothing: for a button, not for guarding work."""
        body = _size_body(
            user_id, event, quantity, metadata, count, input_tokens, max_output_tokens, input_cost_cents,
            cache_write_tokens, cache_write_1h_tokens, run_id,
        )  # fmt: skip
        try:
            call = Call("POST", "/can-use", body, is_read=True)
            return cast(CanUseAnswer, self._decisions.ask(call, self._options))
        except HoldfastError as error:
            if not (self._allows and error.is_unavailable):
                raise
            return {"allowed": True, "matched": False, "reasons": [], "details": []}

    def explain(
        self,
        user_id: str,
        event: str,
        quantity: Optional[float] = None,
        *,
        metadata: Optional[Metadata] = None,
        count: Optional[float] = None,
        input_tokens: Optional[float] = None,
        max_output_tokens: Optional[float] = None,
        input_cost_cents: Optional[float] = None,
        cache_write_tokens: Optional[float] = None,
        cache_write_1h_tokens: Optional[float] = None,
        run_id: Optional[str] = None,
    ) -> Explanation:
        """Returns what a reserve would answer now and why, with every limit group and balance: for support."""
        body = _size_body(
            user_id, event, quantity, metadata, count, input_tokens, max_output_tokens, input_cost_cents,
            cache_write_tokens, cache_write_1h_tokens, run_id,
        )  # fmt: skip
        return cast(Explanation, self._send(Call("POST", "/explain", body, is_read=True)))

    def usage(
        self, user_id: Optional[str] = None, event: Optional[str] = None, *, levels: Optional[bool] = None
    ) -> Usage:
        """Reads the counters and credits of a user; with a public key those of the end-user token's user.

        :param event: lists only groups whose rules cover this event
        :param levels: adds the users above
        """
        query = {"userId": user_id, "event": event, "levels": levels}
        return cast(Usage, self._send(Call("GET", "/usage", query=query)))

    def usage_me(self, event: Optional[str] = None) -> Usage:
        """Reads the counters and credits of the end-user token's user."""
        return cast(Usage, self._send(Call("GET", "/usage/me", query={"event": event})))

    def overage(
        self, user_id: str, *, from_time: Optional[Moment] = None, to_time: Optional[Moment] = None
    ) -> OverageList:
        """Lists by hour what limit groups sold to a user past their quotas, settled, oldest first."""
        query = {"userId": user_id, "from": from_time, "to": to_time}
        return cast(OverageList, self._send(Call("GET", "/overage", query=query)))

    def set_spend_cap(self, group_id: str, max: Optional[float], *, user_id: Optional[str] = None) -> SpendCap:
        """Sets the most that a group may sell to a user past its quota; None for no cap of the user's own.

        :param user_id: left out with a public key: the user of the token
        """
        body = {"userId": user_id, "groupId": group_id, "max": nullable(max)}
        return cast(SpendCap, self._send(Call("PUT", "/usage/spend-cap", body)))

    def watch_usage(self, user_id: Optional[str] = None, event: Optional[str] = None) -> UsageStream:
        """Iterates over the usage of a user: at once, and whenever it changes.

        It connects again when the connection breaks, and ends when the service ends it for good. ``close`` ends it.
        """
        query = {"userId": user_id, "event": event}
        return UsageStream(self._transport, Call("GET", "/usage/stream", query=query), self._options)

    def compose(
        self,
        type: str,
        user_id: str,
        vars: Optional[Metadata] = None,
        *,
        run_id: Optional[str] = None,
    ) -> Any:
        """Asks a model for a structured answer about a user, by a compose type of the catalog, and meters its cost.

        The answer is ``Generated`` or ``OptedOut``, by its ``status``. This may take a minute.
        """
        body = {"type": type, "userId": user_id, "vars": vars, "runId": run_id}
        return self._send(Call("POST", "/compose", body, timeout_min=COMPOSE_TIMEOUT))

    def reservation(
        self,
        user_id: str,
        event: str,
        quantity: Optional[float] = None,
        *,
        metadata: Optional[Metadata] = None,
        count: Optional[float] = None,
        input_tokens: Optional[float] = None,
        max_output_tokens: Optional[float] = None,
        input_cost_cents: Optional[float] = None,
        cache_write_tokens: Optional[float] = None,
        cache_write_1h_tokens: Optional[float] = None,
        run_id: Optional[str] = None,
        ttl_seconds: Optional[float] = None,
        prompt: Optional[str] = None,
        fit: Optional[Fit] = None,
        wait_seconds: float = 0,
    ) -> Reservation:
        """Reserves, runs the block of ``with``, and commits what the block says that it used.

        Without enough quota it raises ``HoldfastError`` before the block. An exception in the block releases. Finished work is
        never lost: a commit that fails is told to ``on_commit_error`` and tried again in the background with the same key.
        ``async with`` does the same and waits in threads.
        """
        size = _size_body(
            user_id, event, quantity, metadata, count, input_tokens, max_output_tokens, input_cost_cents,
            cache_write_tokens, cache_write_1h_tokens, run_id,
        )  # fmt: skip
        body = {**size, "ttlSeconds": ttl_seconds, "prompt": prompt, "fit": fit}
        return Reservation(self, body, wait_seconds)

    def run(
        self,
        user_id: str,
        limits: List[RunInputLimits],
        *,
        name: Optional[str] = None,
        parent_run_id: Optional[str] = None,
        ttl_seconds: Optional[float] = None,
        metadata: Optional[Metadata] = None,
    ) -> RunScope:
        """Opens a run for the block of ``with``, and ends it however the block ends.

        Pass the id of the run to the calls of the work, and as ``parent_run_id`` to the runs of sub-agents.
        """
        return RunScope(
            self.runs,
            lambda runs: runs.create(
                user_id,
                limits,
                name=name,
                parent_run_id=parent_run_id,
                ttl_seconds=ttl_seconds,
                metadata=metadata,
            ),
        )

    def _send(self, call: Call) -> Any:
        return self._send_by(call, self._options, None)

    def _send_by(self, call: Call, options: CallOptions, deadline: Optional[float]) -> Any:
        if self._together is not None and call.path in NAMES:
            return self._together.send(call, options, deadline)
        return self._transport.send(call, options, deadline)

    def _reserve_work(self, body: Dict[str, Any], wait_seconds: float) -> ReserveReply:
        """Reserves. Work that is allowed without a decision is tracked when its usage is known."""
        if not 0 <= wait_seconds <= 60:
            raise invalid_input("wait_seconds: must be a number from 0 to 60")
        until = time.monotonic() + wait_seconds
        turn = 0
        while True:
            turn += 1
            try:
                call = Call("POST", "/reserve", body)
                answer = cast(ReserveReply, self._decisions.ask(call, self._asked_again(turn)))
            except HoldfastError as error:
                if not (self._allows and error.is_unavailable):
                    raise
                if self._on_allowed_unmetered is not None:
                    tell(self._on_allowed_unmetered, error, _event_of(body, {}))
                return {"allowed": True, "matched": False}
            after = answer.get("retryAfterMs")
            left = until - time.monotonic()
            if answer["allowed"] or after is None or left <= 0:
                return answer
            self._transport.sleep(min(after / 1000, WAIT_PAUSE_MAX, left))

    def _asked_again(self, turn: int) -> CallOptions:
        """A question that is asked again needs another key: with the first the service would repeat its refusal."""
        key = self._options.idempotency_key
        if turn == 1 or key is None:
            return self._options
        return self._options.with_(idempotency_key=_key_with(key, f":{turn}"))

    def _track_unmetered(self, body: Dict[str, Any], commit: Dict[str, Any]) -> None:
        """Tracks work that was allowed without a decision, when the service is back."""
        key = self._options.idempotency_key
        self._track_in_background(_event_of(body, commit), None if key is None else _key_with(key, ":unmetered"))

    def _track_in_background(self, body: Dict[str, Any], key: Optional[str]) -> None:
        call = Call("POST", "/track", body)
        used = key or self._transport.new_key()
        known = {**(call.body or {}), "idempotencyKey": used}
        self._background.add(call, used, lambda error: self._on_track_error(error, known))

    def _commit_work(
        self, reservation_id: str, body: Dict[str, Any], others: Sequence[Dict[str, Any]] = ()
    ) -> Optional[CommitAnswer]:
        """Commits finished work. It never raises: a temporary error is retried in the background.

        :param others: committed instead, one after the other, where the service refuses the body as invalid
        """
        key = self._transport.new_key()
        call = _commit_call(reservation_id, body)
        options = self._options.with_(idempotency_key=key)
        failed: Dict[str, Any] = {**(call.body or {}), "idempotencyKey": key}
        try:
            return cast(CommitAnswer, self._send_by(call, options, None))
        except HoldfastError as error:
            if others and error.code == "invalid_request":
                return self._commit_work(reservation_id, others[0], others[1:])
            is_retried = error.is_unavailable or error.code == "rate_limited"
            tell(self._on_commit_error, error, {**failed, "isRetried": is_retried})
            if is_retried:
                lost = {**failed, "isRetried": False}
                self._background.add(call, key, lambda last: self._on_commit_error(last, lost))
            return None


def _key_with(key: str, end: str) -> str:
    """Another key of the same job. As little as possible is cut off: the ends of long keys may tell jobs apart."""
    return key[: KEY_LENGTH_MAX - len(end)] + end


def _commit_call(reservation_id: str, body: Dict[str, Any]) -> Call:
    if not reservation_id:
        raise invalid_input("reservation_id: is missing; work that was allowed unmetered has none")
    return Call("POST", "/commit", {**body, "reservationId": reservation_id}, timeout_min=TIMEOUT)


def _size_body(
    user_id: str,
    event: str,
    quantity: Optional[float],
    metadata: Optional[Metadata],
    count: Optional[float],
    input_tokens: Optional[float],
    max_output_tokens: Optional[float],
    input_cost_cents: Optional[float],
    cache_write_tokens: Optional[float],
    cache_write_1h_tokens: Optional[float],
    run_id: Optional[str],
) -> Dict[str, Any]:
    return {
        "userId": user_id,
        "event": event,
        "quantity": quantity,
        "metadata": metadata,
        "count": count,
        "inputTokens": input_tokens,
        "maxOutputTokens": max_output_tokens,
        "inputCostCents": input_cost_cents,
        "cacheWriteTokens": cache_write_tokens,
        "cacheWrite1hTokens": cache_write_1h_tokens,
        "runId": run_id,
    }


def _track_body(
    user_id: str,
    event: str,
    quantity: Optional[float],
    metadata: Optional[Metadata],
    count: Optional[float],
    usage: Optional[ModelUsage],
    provider_usage: Optional[Metadata],
    input_tokens: Optional[float],
    input_cost_cents: Optional[float],
    cost_cents: Optional[float],
    run_id: Optional[str],
    prompt: Optional[str],
    response: Optional[str],
) -> Dict[str, Any]:
    return {
        "userId": user_id,
        "event": event,
        "quantity": quantity,
        "metadata": metadata,
        "count": count,
        "usage": usage,
        "providerUsage": provider_usage,
        "inputTokens": input_tokens,
        "inputCostCents": input_cost_cents,
        "costCents": cost_cents,
        "runId": run_id,
        "prompt": prompt,
        "response": response,
    }


def _event_of(asked: Dict[str, Any], commit: Dict[str, Any]) -> Dict[str, Any]:
    """The event of work without a reservation, with the amounts that its commit would have charged."""
    actual = commit.get("actual") or {}
    extra = commit.get("extra") or {}

    def added(held: Optional[float], unit: str, other: str = "") -> Optional[float]:
        more = extra.get(unit, extra.get(other))
        return held if more is None else (held or 0) + more

    tokens = added(asked.get("inputTokens"), "tokens", "outputTokens")
    if asked.get("maxOutputTokens") is not None:
        tokens = (tokens or 0) + asked["maxOutputTokens"]
    seconds = asked.get("quantity")
    if extra.get("seconds") is not None:
        seconds = (1 if seconds is None else seconds) + extra["seconds"]
    event = {
        "userId": asked["userId"],
        "event": asked["event"],
        "quantity": actual.get("seconds", seconds),
        "metadata": asked.get("metadata"),
        "count": actual.get("count", (asked.get("count") or 1) + (extra.get("count") or 0)),
        "runId": asked.get("runId"),
        "prompt": asked.get("prompt"),
        "response": commit.get("response"),
    }
    if commit.get("usage") is not None or commit.get("providerUsage") is not None:
        return {**event, "usage": commit.get("usage"), "providerUsage": commit.get("providerUsage")}
    cents = added(asked.get("inputCostCents"), "cents", "outputCostCents")
    return {
        **event,
        "inputTokens": actual.get("tokens", tokens),
        "inputCostCents": actual.get("cents", cents),
        "costCents": commit.get("costCents"),
    }


def _print_commit_error(error: HoldfastError, commit: Dict[str, Any]) -> None:
    again = ", and is retried" if commit["isRetried"] else ""
    print(f"holdfast: the commit of {commit['reservationId']} failed{again}: {error}", file=sys.stderr)


def _print_track_error(error: HoldfastError, event: Dict[str, Any]) -> None:
    print(f"holdfast: {event['event']} of {event['userId']} was not counted: {error}", file=sys.stderr)
