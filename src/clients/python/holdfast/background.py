"""Writes without a waiting caller: events of ``track_later``, commits that failed, and work that was allowed unmetered.

A thread sends them, and again until the service takes them. Each keeps its idempotency key, so it counts once. What is
finally not taken is reported: nothing is lost in silence.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional

from .errors import HoldfastError
from .forks import begin
from .transport import CallOptions, Transport
from .wire import Call, text_of

WAITING_MAX = 50_000
"""The most writes that may wait; a further one is reported at once."""
BATCH_EVENTS_MAX = 100
BATCH_BYTES_MAX = 4 * 1024 * 1024
WAIT_SECONDS = 1.0
"""How long the oldest write may wait for others."""
MAX_DELAY = 30.0
KEPT_SECONDS = 23 * 3600
"""Keys are known to the service for 24 hours. A write that waits longer could count twice, and is reported instead."""

OnLost = Callable[[HoldfastError], None]


class Write:
    """A call that is sent later."""

    def __init__(self, call: Call, key: str, on_lost: OnLost) -> None:
        self.call = call
        self.key = key
        self.on_lost = on_lost
        self.since = time.monotonic()
        event: Dict[str, Any] = {**(call.body or {}), "idempotencyKey": key}
        # Raises at once for an input that cannot be sent.
        self.text = text_of(event)


class Background:
    """Sends writes in their order; events of ``track`` go many in a call."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        begin(self)

    def begin(self) -> None:
        # In a child: the parent sends what waits.
        self._waiting: Deque[Write] = deque()
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._thread: Optional[threading.Thread] = None
        self._failures = 0

    def add(self, call: Call, key: Optional[str], on_lost: OnLost) -> None:
        """Adds a write, which is sent within a second.

        :param on_lost: called with the reason if the write is finally not taken
        """
        write = Write(call, key or self._transport.new_key(), on_lost)
        with self._changed:
            is_full = len(self._waiting) >= WAITING_MAX
            if not is_full:
                self._waiting.append(write)
                self._start()
                self._changed.notify()
        if is_full:
            tell(on_lost, HoldfastError("unavailable", 0, "Too many writes are waiting"))

    def flush(self) -> None:
        """Sends what waits, once. Raises the error for which some still waits."""
        with self._changed:
            left = len(self._waiting)
        while left > 0:
            before = left
            error = self._send_some()
            if error is not None:
                raise error
            with self._changed:
                left = min(before - 1, len(self._waiting))

    def _start(self) -> None:
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name="holdfast-background", daemon=True)
        self._thread.start()
        atexit.register(self._at_end)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                pause = min(WAIT_SECONDS * 2**self._failures, MAX_DELAY)
                if self._failures > 0 or len(self._waiting) < BATCH_EVENTS_MAX:
                    self._changed.wait_for(self._is_full, pause)
            self._send_some()

    def _is_full(self) -> bool:
        return self._failures == 0 and len(self._waiting) >= BATCH_EVENTS_MAX

    def _at_end(self) -> None:
        try:
            self.flush()
        except HoldfastError as error:
            with self._changed:
                left, self._waiting = list(self._waiting), deque()
            for write in left:
                tell(write.on_lost, error)

    def _send_some(self) -> Optional[HoldfastError]:
        """Sends the next write, or the next events together. Returns the error for which they wait on."""
        with self._sending:
            with self._changed:
                batch = self._next()
            if not batch:
                return None
            is_events = batch[0].call.path == "/track"
            again, error = self._send_events(batch) if is_events else self._send_one(batch[0])
            with self._changed:
                for _ in batch:
                    self._waiting.popleft()
                # Events keep their order. Other writes go to the end: one that is not taken holds up no other.
                if is_events:
                    self._waiting.extendleft(reversed(again))
                else:
                    self._waiting.extend(again)
                self._failures = 0 if error is None else self._failures + 1
            return error

    def _next(self) -> List[Write]:
        batch: List[Write] = []
        size = 0
        for write in self._waiting:
            size += len(write.text)
            is_event = write.call.path == "/track"
            if batch and (not is_event or len(batch) == BATCH_EVENTS_MAX or size > BATCH_BYTES_MAX):
                break
            batch.append(write)
            if not is_event:
                break
        return batch

    def _send_one(self, write: Write) -> "tuple[List[Write], Optional[HoldfastError]]":
        try:
            self._transport.send(write.call, CallOptions(idempotency_key=write.key, max_retries=0))
        except HoldfastError as error:
            return self._after(write, error)
        return [], None

    def _send_events(self, batch: List[Write]) -> "tuple[List[Write], Optional[HoldfastError]]":
        again: List[Write] = []
        last: Optional[HoldfastError] = None
        for write, error in zip(batch, self._errors_of(batch)):
            if error is not None:
                kept, waits_for = self._after(write, error)
                again += kept
                last = waits_for or last
        return again, last

    def _errors_of(self, batch: List[Write]) -> List[Optional[HoldfastError]]:
        """The error of each event; None where it was counted."""
        text = b'{"events":[' + b",".join(write.text for write in batch) + b"]}"
        try:
            answer = self._transport.once(Call("POST", "/track/batch", {}), text, CallOptions())
        except HoldfastError as error:
            return [error for _ in batch]
        results = (answer.body.get("data") or {}).get("results", [])
        return [_error_of(results[at] if at < len(results) else {}) for at in range(len(batch))]

    def _after(self, write: Write, error: HoldfastError) -> "tuple[List[Write], Optional[HoldfastError]]":
        may_pass = error.is_unavailable or error.code == "rate_limited"
        if may_pass and time.monotonic() - write.since < KEPT_SECONDS:
            return [write], error
        tell(write.on_lost, error)
        return [], None


def _error_of(result: Dict[str, Any]) -> Optional[HoldfastError]:
    if result.get("ok") is True:
        return None
    missing = {"code": "bad_answer", "message": "The answer has no result for this event"}
    error = result.get("error") or missing
    return HoldfastError(error["code"], 0, error["message"])


def tell(handler: Callable[..., None], *args: object) -> None:
    """Calls a handler of the caller; its own error must not stop what is sent after it."""
    try:
        handler(*args)
    except Exception as error:  # noqa: BLE001 - any error of the handler
        print(f"holdfast: a handler failed: {error!r}", file=sys.stderr)
