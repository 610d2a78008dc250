"""Reads a user's usage whenever it changes, from server-sent events."""

from __future__ import annotations

import http.client
import json
import time
from typing import Iterator, Optional, Tuple, cast

from .errors import HoldfastError
from .transport import CallOptions, Transport, pause_before, read_answer
from .types import Usage
from .wire import Call

SILENCE_SECONDS = 45.0
"""The service says at least a comment every 15 seconds; after this long the connection is taken for broken."""


class UsageStream:
    """An iterator over the usage of a user, by ``client.watch_usage``."""

    reason: Optional[str] = None
    """Why the service ended it for good: ``erased``, ``key_revoked``, ``replaced`` or ``token_expired``."""

    def __init__(self, transport: Transport, call: Call, options: CallOptions) -> None:
        self._transport = transport
        self._call = call
        self._options = options
        self._connection: Optional[http.client.HTTPConnection] = None
        self._is_closed = False

    def __iter__(self) -> Iterator[Usage]:
        retry = 0
        while not self._is_closed:
            try:
                for name, data in self._events():
                    if name == "usage":
                        retry = 0
                        yield cast(Usage, json.loads(data))
                    elif name == "end":
                        reason = json.loads(data)["reason"]
                        # The process that served it stops, or the user became an alias of another one.
                        if reason in ("stopping", "merged"):
                            break
                        self.reason = reason
                        return
            except HoldfastError as error:
                if self._is_closed:
                    return
                pause = pause_before(min(retry, 5), error)
                if pause is None:
                    raise
                self._transport.sleep(pause)
                retry += 1

    def close(self) -> None:
        """Ends it, also from another thread."""
        self._is_closed = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            connection.close()

    def _events(self) -> Iterator[Tuple[str, str]]:
        end = time.monotonic() + SILENCE_SECONDS
        connection, response = self._transport.open(self._call, None, self._options, end, "text/event-stream")
        self._connection = connection
        try:
            if response.status != 200:
                read_answer(response, response.read())
                return
            name, data = "", ""
            while True:
                if connection.sock is not None:
                    connection.sock.settimeout(SILENCE_SECONDS)
                line = response.readline()
                if not line:
                    raise HoldfastError("network_error", 0, "The stream ended unexpectedly")
                text = line.decode("utf-8").rstrip("\r\n")
                if text == "":
                    if data:
                        yield name, data
                    name, data = "", ""
                elif text.startswith("event:"):
                    name = text[6:].strip()
                elif text.startswith("data:"):
                    data += text[5:].strip()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise HoldfastError("network_error", 0, "The stream ended unexpectedly") from error
        finally:
            self._connection = None
            connection.close()
