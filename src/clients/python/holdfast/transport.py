"""Sends calls: headers, timeouts, retries, and the envelope of answers.

Each try of a write has the same idempotency key and the same bytes, so the service counts it once, whichever
try succeeded. Connections are kept and shared by threads, one call on each at a time.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import random
import re
import secrets
import socket
import ssl
import threading
import time
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Tuple, Union
from urllib.parse import urlsplit

from .errors import HoldfastError, invalid_input
from .forks import begin
from .wire import Call

TIMEOUT = 30.0
"""How many seconds one try may take by default."""
MAX_RETRIES = 5
BASE_DELAY = 0.25
MAX_DELAY = 10.0
"""The longest pause. If the service asks for a longer one, the call fails instead."""
CONNECTIONS_KEPT = 64

Token = Union[str, Callable[[], str], None]


@dataclass(frozen=True)
class CallOptions:
    """Options of one call, by ``client.with_options``."""

    timeout: Optional[float] = None
    max_retries: Optional[int] = None
    idempotency_key: Optional[str] = None
    request_id: Optional[str] = None
    end_user_token: Token = None

    def with_(self, **changes: Any) -> CallOptions:
        return replace(self, **{name: value for name, value in changes.items() if value is not None})


class Connections:
    """Connections to one service that are open and not in use."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url.rstrip("/"))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("base_url: must be an address such as https://holdfast.example.com")
        self.path = parts.path
        self._host = parts.hostname
        self._port = parts.port
        self._context = ssl.create_default_context() if parts.scheme == "https" else None
        self._free: List[http.client.HTTPConnection] = []
        begin(self)

    def begin(self) -> None:
        # In a child: those of the parent stay open there.
        for connection in self._free:
            connection.close()
        self._free = []
        self._lock = threading.Lock()

    def take(self) -> Tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before: the service may have closed it since."""
        with self._lock:
            if self._free:
                return self._free.pop(), True
        return self.new(), False

    def new(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port)
        return http.client.HTTPSConnection(self._host, self._port, context=self._context)

    def keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._free) < CONNECTIONS_KEPT:
                self._free.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()


@dataclass(frozen=True)
class Answer:
    """The body of an answer, and what its head says."""

    body: Any
    status: int
    request_id: Optional[str]


class Transport:
    """Sends calls for one key to one service."""

    def __init__(
        self,
        api_key: str,
        base_url: str,
        timeout: Optional[float],
        max_retries: int,
        end_user_token: Token,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not api_key.startswith(("sk_", "uk_", "pk_", "rk_")):
            raise ValueError("api_key: must be a key that begins with sk_, rk_, uk_ or pk_")
        self._api_key = api_key
        self._timeout = TIMEOUT if timeout is None else timeout
        self._max_retries = max_retries
        self._token = end_user_token
        self._key_prefix = ""
        self.connections = Connections(base_url)
        self.sleep = sleep

    def new_key(self) -> str:
        """A random idempotency key, which begins as the service wants it to begin."""
        return self._key_prefix + secrets.token_hex(12 if self._key_prefix else 16)

    def begin_keys_with(self, prefix: object) -> None:
        """Takes what the service wants keys to begin with. A key without it works too, but is looked up."""
        is_plain = isinstance(prefix, str) and re.fullmatch(r"[!-~]{1,50}", prefix) is not None
        self._key_prefix = str(prefix) if is_plain else ""

    def send(self, call: Call, options: CallOptions = CallOptions(), deadline: Optional[float] = None) -> Any:
        """Sends a call until it is answered or out of retries; returns the data of the answer.

        :param deadline: when the call ends in all, by ``time.monotonic``
        """
        if not call.is_read and options.idempotency_key is None:
            options = options.with_(idempotency_key=self.new_key())
        text = call.text
        retries = self.retries_of(options)
        for retry in range(retries + 1):
            try:
                answer = self.once(call, text, options, deadline)
                return data_of(answer) if call.has_envelope else answer.body
            except HoldfastError as error:
                delay = pause_before(retry, error) if retry < retries else None
                if delay is None or (deadline is not None and time.monotonic() + delay >= deadline):
                    raise
                self.sleep(delay)
        raise AssertionError("a call has at least one try")

    def retries_of(self, options: CallOptions) -> int:
        """The most tries of a call after the first one."""
        return self._max_retries if options.max_retries is None else options.max_retries

    def limit_of(self, call: Call, options: CallOptions) -> float:
        """The seconds that one try of a call may take."""
        return max(self._timeout, call.timeout_min) if options.timeout is None else options.timeout

    def once(
        self, call: Call, text: Optional[bytes], options: CallOptions, deadline: Optional[float] = None
    ) -> Answer:
        """One try. Raises ``HoldfastError`` for anything but a success."""
        limit = self.limit_of(call, options)
        end = time.monotonic() + limit
        if deadline is not None:
            end = min(end, deadline)
        connection, response = self.open(call, text, options, end)
        try:
            body = _read(connection, response, end)
        except OSError as error:
            connection.close()
            raise _fault(error, limit) from error
        except http.client.HTTPException as error:
            connection.close()
            raise _fault(error, limit) from error
        if response.will_close:
            connection.close()
        else:
            self.connections.keep(connection)
        prefix = response.headers.get("idempotency-key-prefix")
        if prefix is not None:
            self.begin_keys_with(prefix)
        return read_answer(response, body)

    def open(
        self, call: Call, text: Optional[bytes], options: CallOptions, end: float, accept: str = "application/json"
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request and waits for the head of its answer."""
        headers = self._headers(call, options, accept)
        target = f"{self.connections.path}/api/v1{call.target}"
        connection, was_used = self.connections.take()
        while True:
            left = end - time.monotonic()
            try:
                if left <= 0:
                    raise socket.timeout()
                connection.timeout = left
                if connection.sock is not None:
                    connection.sock.settimeout(left)
                connection.request(call.method, target, text, headers)
                return connection, connection.getresponse()
            except ValueError as error:
                connection.close()
                raise invalid_input(f"A header or the address has characters that are not allowed: {error}") from error
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                # A kept connection may have been closed meanwhile. The same key makes a second send safe.
                if not was_used or isinstance(error, socket.timeout):
                    raise _fault(error, left) from error
                connection, was_used = self.connections.new(), False

    def _headers(self, call: Call, options: CallOptions, accept: str) -> Dict[str, str]:
        token = self._token if options.end_user_token is None else options.end_user_token
        given = {
            "authorization": f"Bearer {self._api_key}",
            "accept": accept,
            "content-type": None if call.body is None else "application/json",
            "idempotency-key": None if call.is_read else options.idempotency_key or self.new_key(),
            "x-request-id": options.request_id,
            "x-end-user-token": token() if callable(token) else token,
        }
        return {name: value for name, value in given.items() if value is not None}


def pause_before(retry: int, error: HoldfastError) -> Optional[float]:
    """The pause before a retry; None for no retry.

    It is never shorter than the service asks for. Half of it is random, so that callers that failed together do not come
    back together.

    :param retry: 0 before the first retry
    """
    if not error.may_pass:
        return None
    asked = error.retry_after or 0
    if asked > MAX_DELAY:
        return None
    full: float = min(BASE_DELAY * 2**retry, MAX_DELAY)
    return asked + full * (1 + random.random()) / 2


def read_answer(response: http.client.HTTPResponse, text: bytes) -> Answer:
    """The body of a success. Raises for an error of the service, and for an answer of another program."""
    request_id = response.headers.get("x-request-id")
    retry_after = _seconds(response.headers.get("retry-after"))
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if 200 <= response.status < 300 and body is not None:
        return Answer(body, response.status, request_id)
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and isinstance(error.get("code"), str):
        message = str(error.get("message"))
        raise HoldfastError(
            error["code"], response.status, message, error.get("details"), request_id, retry_after
        )
    raise bad_answer(response.status, request_id, retry_after)


def data_of(answer: Answer) -> Any:
    """The data of an answer with the envelope of the service."""
    body = answer.body
    if not isinstance(body, dict) or body.get("ok") is not True or "data" not in body:
        raise bad_answer(answer.status, answer.request_id, None)
    return body["data"]


def bad_answer(status: int, request_id: Optional[str], retry_after: Optional[float]) -> HoldfastError:
    message = f"The answer with status {status} is not from the service; check base_url"
    return HoldfastError("bad_answer", status, message, None, request_id, retry_after)


def _read(
    connection: http.client.HTTPConnection, response: http.client.HTTPResponse, end: float
) -> bytes:
    """The body of an answer. Its time is that of the whole try."""
    pieces: List[bytes] = []
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise socket.timeout()
        if connection.sock is not None:
            connection.sock.settimeout(left)
        piece = response.read(65_536)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def _fault(error: Exception, limit: float) -> HoldfastError:
    if isinstance(error, socket.timeout):
        return HoldfastError("timeout", 0, f"No answer within {max(limit, 0):.1f} s")
    return HoldfastError("network_error", 0, "The service is unreachable, or the connection broke")


def _seconds(header: Optional[str]) -> Optional[float]:
    """The seconds of a Retry-After header, which has seconds or a date; None for anything else."""
    if header is None:
        return None
    if header.isdigit():
        return float(header)
    try:
        at = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    return max(0.0, at.timestamp() - time.time())
