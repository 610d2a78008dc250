"""Reads a user's usage whenever it changes, from server-sent events."""

from __future__ import annotations

import codecs
import http.client
import json
import random
import re
import socket
import time
from contextlib import suppress
from typing import Iterable, Iterator, List, Optional, Tuple, cast

from .errors import HoldfastError
from .transport import BASE_DELAY, CallOptions, Transport, bad_answer, pause_before, read_answer
from .types import Usage
from .wire import Call

SILENCE_SECONDS = 45.0
"""The service says at least a comment every 15 seconds; after this long the connection is taken for broken."""


class UsageStream:
    """An iterator over the usage of a user, by ``client.watch_usage``."""

    reason: Optional[str] = None
    """Why the service ended it for good: ``erased``, ``key_revoked``, ``replaced`` or ``token_expired``, without a function
    that makes another token."""

    def __init__(self, transport: Transport, call: Call, options: CallOptions) -> None:
        self._transport = transport
        self._call = call
        self._options = options
        self._sock: Optional[socket.socket] = None
        self._is_closed = False

    def __iter__(self) -> Iterator[Usage]:
        retry, pause = 0, 0.0
        while not self._is_closed:
            try:
                for name, data in self._events():
                    if self._is_closed:
                        return
                    if name == "usage":
                        retry = 0
                        yield cast(Usage, json.loads(data))
                    elif name == "end":
                        reason = json.loads(data)["reason"]
                        if not self._goes_on_after(reason):
                            self.reason = reason
                            return
                        # The readers of a process that stops do not all come back at once.
                        pause = 4 * BASE_DELAY * random.random() if reason == "stopping" else BASE_DELAY * min(retry, 1)
                        break
            except HoldfastError as error:
                passing = pause_before(min(retry, 5), error)
                if self._is_closed:
                    return
                if passing is None:
                    raise
                pause = passing
            self._transport.sleep(pause)
            retry += 1

    def _goes_on_after(self, reason: str) -> bool:
        """Whether to connect again: its process stops, its user became an alias of another one, or its token has expired
        and a function makes another one."""
        if reason == "token_expired":
            return self._transport.makes_token(self._options)
        return reason in ("stopping", "merged")

    def close(self) -> None:
        """Ends it, also from another thread."""
        self._is_closed = True
        sock = self._sock
        if sock is not None:
            # A closed socket would not wake a thread that waits for its bytes.
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _events(self) -> Iterator[Tuple[str, str]]:
        end = time.monotonic() + SILENCE_SECONDS
        connection, response = self._transport.open(self._call, None, self._options, end, "text/event-stream")
        sock = self._sock = connection.sock
        try:
            if response.headers.get_content_type() != "text/event-stream":
                answer = read_answer(response, response.read())
                raise bad_answer(answer.status, answer.request_id, None)
            if sock is not None:
                sock.settimeout(SILENCE_SECONDS)
            yield from events_of(iter(lambda: response.read1(65_536), b""))
            raise HoldfastError("network_error", 0, "The stream ended unexpectedly")
        except (OSError, http.client.HTTPException) as error:
            raise HoldfastError("network_error", 0, "The stream ended unexpectedly") from error
        finally:
            self._sock = None
            connection.close()


def events_of(pieces: Iterable[bytes]) -> Iterator[Tuple[str, str]]:
    """Yields the name and the data of each server-sent event, once the event is complete.

    A line ends with CR LF, LF or CR; only the beginning of the stream may have a byte order mark.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    text, name, is_after_cr = "", "", False
    data: List[str] = []
    for piece in pieces:
        new = decoder.decode(piece)
        # A carriage return at the end was a line's end, whether a line feed follows or not.
        text += new[1:] if is_after_cr and new.startswith("\n") else new
        is_after_cr = new.endswith("\r") if new else is_after_cr
        *lines, text = re.split("\r\n?|\n", text)
        for line in lines:
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if line == "":
                if data:
                    yield name or "message", "\n".join(data)
                name, data = "", []
            elif field == "event":
                name = value
            elif field == "data":
                data.append(value)
