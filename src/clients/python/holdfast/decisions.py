"""Decisions: reserve and can-use, which a caller waits for before its work.

Each has a time in all, retries included. After several failures in a row a breaker answers at once, and tries the service
once a second.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Optional

from .errors import HoldfastError
from .forks import begin
from .transport import CallOptions
from .wire import Call

DECISION_TIMEOUT = 2.0
"""How many seconds a decision may take in all, by default."""
FAILURES_MAX = 5
"""Failures in a row after which decisions are answered without the service."""
PROBE_EVERY = 1.0
"""How often one decision is then tried all the same, in seconds."""

Send = Callable[[Call, CallOptions, Optional[float]], Any]


class Breaker:
    """Counts failures in a row, and says which calls are still sent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        begin(self)

    def begin(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._probed_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= FAILURES_MAX

    def may_try(self) -> bool:
        """Whether a call is sent now. While the breaker is open that is one call a second."""
        with self._lock:
            if not self.is_open:
                return True
            if self._clock() - self._probed_at < PROBE_EVERY:
                return False
            self._probed_at = self._clock()
            return True

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            self._probed_at = self._clock()


class Decisions:
    """Sends decisions."""

    def __init__(self, send: Send, timeout: Optional[float], breaker: Optional[Breaker] = None) -> None:
        self._send = send
        self._timeout = DECISION_TIMEOUT if timeout is None else timeout
        self._breaker = Breaker() if breaker is None else breaker

    def ask(self, call: Call, options: CallOptions) -> Any:
        """Returns the decision. Raises an error with ``is_unavailable`` where there is none."""
        is_probe = self._breaker.is_open
        if not self._breaker.may_try():
            message = f"The service failed {FAILURES_MAX} times in a row; it is tried again every second"
            raise HoldfastError("unavailable", 0, message)
        limit = self._timeout if options.timeout is None else options.timeout
        asked = options.with_(timeout=limit, max_retries=0 if is_probe else options.max_retries)
        try:
            answer = self._send(call, asked, time.monotonic() + limit)
        except HoldfastError as error:
            if error.is_unavailable:
                self._breaker.failed()
            elif error.status > 0:
                self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return answer
