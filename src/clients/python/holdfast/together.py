"""Sends calls together that threads make while others are under way.

At most four requests are out. A call that comes while fewer are out is sent at once, by its own thread and to its own path,
so a lone call never waits. Later ones are collected, and leave as one batch as soon as a request is answered. Each call
keeps its time, its retries and its key; there is no order between calls that did not wait for each other.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional

from .errors import HoldfastError
from .forks import begin
from .transport import CallOptions, Transport, bad_answer, pause_before
from .wire import Call, text_of

OUT_MAX = 4
"""Requests of these calls that are out at the same time."""
CALLS_MAX = 500
BYTES_MAX = 256 * 1024
SINGLES_SECONDS = 600
"""How long calls are sent one by one to a service that does not know batches."""
BATCH_TIMEOUT = 30.0
SENDERS_MAX = 16 * OUT_MAX
"""Threads that send batches. Those whose callers have all gone may wait for an answer beside the ones that are out."""

NAMES = {
    "/reserve": "reserve",
    "/commit": "commit",
    "/release": "release",
    "/can-use": "can-use",
    "/track": "track",
}
"""The calls that can be sent together, by their paths."""


class Waiting:
    """A call that waits for its result."""

    def __init__(self, call: Call, key: Optional[str]) -> None:
        self.call = call
        self.key = key
        form: Dict[str, Any] = {**(call.body or {}), "call": NAMES[call.path]}
        if key is not None:
            form["idempotencyKey"] = key
        self.text = text_of(form)
        self.done = threading.Event()
        self.batch: Optional[Batch] = None
        self.data: Any = None
        self.error: Optional[HoldfastError] = None
        self.must_be_single = False
        self.has_place = False
        """Whether it takes one of the places of requests, to be sent by its own thread."""
        self.is_given_up = False
        self.is_asked_again = False
        """Whether its key was sent again after it was given up: what it may have reserved belongs to the later call."""


class Batch:
    """Calls that are sent together."""

    def __init__(self, calls: List[Waiting]) -> None:
        self.calls = calls
        self.callers = len(calls)
        """How many have not gone."""
        self.is_out = True
        """Whether it takes one of the places of requests."""
        for waiting in calls:
            waiting.batch = self


class Together:
    """Collects calls of one client."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._singles_until = 0.0
        begin(self)

    def begin(self) -> None:
        self._lock = threading.Lock()
        self._queue: List[Waiting] = []
        self._left: List[Waiting] = []
        """Calls that were given up while their batch is out."""
        self._out = 0
        self._senders = ThreadPoolExecutor(SENDERS_MAX, thread_name_prefix="holdfast")
        self._releaser = ThreadPoolExecutor(1, thread_name_prefix="holdfast-release")

    def send(self, call: Call, options: CallOptions, deadline: Optional[float] = None) -> Any:
        """Sends a call, alone or with others, until it is answered or out of retries.

        :param deadline: when the call ends in all, by ``time.monotonic``
        """
        limit = self._transport.limit_of(call, options)
        key = None if call.is_read else options.idempotency_key or self._transport.new_key()
        keyed = options.with_(idempotency_key=key)
        retries = self._transport.retries_of(options)
        for retry in range(retries + 1):
            left = limit if deadline is None else min(limit, max(deadline - time.monotonic(), 0))
            try:
                return self._once(call, keyed, left)
            except HoldfastError as error:
                pause = pause_before(retry, error) if retry < retries else None
                if pause is None or (deadline is not None and time.monotonic() + pause >= deadline):
                    raise
                self._transport.sleep(pause)
        raise AssertionError("a call has at least one try")

    def _once(self, call: Call, options: CallOptions, limit: float) -> Any:
        end = time.monotonic() + limit
        waiting = self._enter(call, options)
        if waiting is not None and not waiting.done.wait(limit):
            self._give_up(waiting)
            raise HoldfastError("timeout", 0, f"No answer within {limit:.1f} s")
        if waiting is None or waiting.must_be_single:
            try:
                return self._alone(call, options, end - time.monotonic())
            finally:
                if waiting is None or waiting.has_place:
                    self._leave()
        if waiting.error is not None:
            raise waiting.error
        return waiting.data

    def _alone(self, call: Call, options: CallOptions, limit: float) -> Any:
        return self._transport.send(call, options.with_(max_retries=0, timeout=limit))

    def _enter(self, call: Call, options: CallOptions) -> Optional[Waiting]:
        """Takes a place among the requests that are out, or a place in the queue."""
        with self._lock:
            for left in self._left:
                left.is_asked_again = left.is_asked_again or left.key == options.idempotency_key
            if self._out < OUT_MAX and not self._queue:
                self._out += 1
                return None
        waiting = Waiting(call, options.idempotency_key)
        if len(waiting.text) > BYTES_MAX or options.request_id or options.end_user_token is not None:
            waiting.must_be_single = True
        with self._lock:
            is_free = self._out < OUT_MAX and not self._queue
            if is_free or time.monotonic() < self._singles_until:
                self._out += 1
                return None
            self._queue.append(waiting)
        return waiting

    def _give_up(self, waiting: Waiting) -> None:
        """Takes a call out that was not sent; of one that was, an allowed reserve will be released.

        Once all callers of a batch have gone, it takes no place any more: a service that hangs holds up no later call.
        """
        with self._lock:
            waiting.is_given_up = True
            if waiting in self._queue:
                self._queue.remove(waiting)
                return
            is_late, batch = waiting.done.is_set(), waiting.batch
            is_last = False
            if not is_late and batch is not None:
                self._left.append(waiting)
                batch.callers -= 1
                is_last = batch.callers == 0
                batch.is_out = not is_last
        if waiting.has_place:
            self._leave()
        elif is_late:
            self._give_back([waiting])
        elif is_last:
            self._leave()

    def _leave(self) -> None:
        """Gives the place of a request to the calls that were collected meanwhile."""
        with self._lock:
            if time.monotonic() < self._singles_until:
                self._send_singly(self._queue)
                self._queue = []
            calls = self._cut()
            if not calls:
                self._out -= 1
                return
            if calls[0].must_be_single:
                calls[0].has_place = True
                calls[0].done.set()
                return
            batch = Batch(calls)
        self._senders.submit(self._send_batch, batch)

    def _send_singly(self, calls: List[Waiting]) -> None:
        for waiting in calls:
            waiting.must_be_single = True
            waiting.done.set()

    def _cut(self) -> List[Waiting]:
        """Takes the calls of the next request: those of a batch, or one that is sent by itself."""
        size = 0
        batch: List[Waiting] = []
        for waiting in self._queue[:CALLS_MAX]:
            size += len(waiting.text)
            if batch and (size > BYTES_MAX or waiting.must_be_single):
                break
            batch.append(waiting)
            if waiting.must_be_single:
                break
        del self._queue[: len(batch)]
        return batch

    def _send_batch(self, batch: Batch) -> None:
        """Sends calls together and hands out their results."""
        calls = batch.calls
        try:
            self._settle(calls, self._results_of(calls))
        except HoldfastError as error:
            if error.status in (404, 405):
                self._singles_until = time.monotonic() + SINGLES_SECONDS
            # What became of the calls is not known: each is sent by itself under its key.
            self._send_singly(calls)
        finally:
            with self._lock:
                for waiting in calls:
                    waiting.done.set()
                self._left = [left for left in self._left if not left.done.is_set()]
            self._give_back([waiting for waiting in calls if waiting.is_given_up])
            if batch.is_out:
                self._leave()

    def _results_of(self, batch: List[Waiting]) -> List[Any]:
        text = b'{"calls":[' + b",".join(waiting.text for waiting in batch) + b"]}"
        call = Call("POST", "/batch", {}, is_read=True)
        answer = self._transport.once(call, text, CallOptions(timeout=BATCH_TIMEOUT))
        data = answer.body.get("data", {}) if isinstance(answer.body, dict) else {}
        results = data.get("results")
        if not isinstance(results, list) or len(results) != len(batch):
            raise bad_answer(answer.status, answer.request_id, None)
        self._transport.begin_keys_with(data.get("keyPrefix"))
        return results

    def _settle(self, batch: List[Waiting], results: List[Any]) -> None:
        for waiting, result in zip(batch, results):
            if result.get("ok") is True:
                waiting.data = result.get("data")
                continue
            error = result.get("error", {})
            waiting.error = HoldfastError(
                str(error.get("code")),
                int(result.get("status", 0)),
                str(error.get("message")),
                error.get("details"),
                None,
                result.get("retryAfterSeconds"),
            )

    def _give_back(self, calls: List[Waiting]) -> None:
        """Releases what was held for calls whose callers no longer wait, unless a later call has the same key."""
        for waiting in calls:
            data, waiting.data = waiting.data, None
            if waiting.is_asked_again or waiting.call.path != "/reserve" or not isinstance(data, dict):
                continue
            if data.get("allowed"):
                try:
                    # Neither a caller nor the next batch waits for it.
                    self._releaser.submit(self._release, data)
                except RuntimeError:
                    return  # The interpreter ends. The reservation expires by itself.

    def _release(self, data: Dict[str, Any]) -> None:
        body = {"reservationId": data.get("reservationId"), "reason": "The caller no longer waits"}
        try:
            self._transport.send(Call("POST", "/release", body), CallOptions(max_retries=0))
        except HoldfastError:
            return  # The reservation expires by itself.
