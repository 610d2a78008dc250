"""Watches: which events a stream has, what connects again, and what ends."""

import socket
import threading
import time
import unittest
from typing import Any, Callable, List, Tuple, cast

from holdfast import Holdfast, HoldfastError
from holdfast.stream import events_of

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LATE = 5


def state(user_id: str) -> bytes:
    return f'event: usage\ndata: {{"userId": "{user_id}"}}\n\n'.encode()


def end(reason: str) -> bytes:
    return f'event: end\ndata: {{"reason": "{reason}"}}\n\n'.encode()


class EventsTest(unittest.TestCase):
    def test_events_are_read_with_any_line_ends_and_pieces(self) -> None:
        expected = [("usage", '{"a":\n1}'), ("message", "é"), ("message", "\ufeff x")]
        text = '\ufeffevent: usage\ndata: {"a":\ndata:1}\nid: 7\n\n: hello\n\ndata:é\n\n\ufeffdata:no\ndata: \ufeff x\n\ndata:cut'
        for line_end in ("\n", "\r\n", "\r"):
            stream = text.replace("\n", line_end).encode()
            for size in (1, 2, 3, 7, 1000):
                pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
                self.assertEqual(list(events_of(pieces)), expected, (line_end, size))

    def test_an_event_is_complete_with_its_last_carriage_return(self) -> None:
        read: List[str] = []
        pieces = (cast(None, read.append(piece)) or piece.encode() for piece in ("data:a\r\r", "\ndata:b\r\n\r", "\n"))
        for name, data in events_of(cast(Any, pieces)):
            read.append(data)
        self.assertEqual(read, ["data:a\r\r", "a", "\ndata:b\r\n\r", "b", "\n"])


class WatchTest(unittest.TestCase):
    def test_a_watch_connects_again_where_it_may(self) -> None:
        tokens: List[str] = []
        script = [state("a"), state("b") + end("stopping"), state("c") + end("merged"), end("token_expired"), state("d")]
        with Script(script) as url:
            stream = watch(url, end_user_token=lambda: tokens.append("token") or "token")
            seen = []
            for usage in stream:
                seen.append(usage["userId"])
                if usage["userId"] == "d":
                    break
        self.assertEqual((seen, len(tokens)), (["a", "b", "c", "d"], 5))

    def test_what_ends_a_watch_for_good(self) -> None:
        for reason in ("erased", "key_revoked", "replaced", "token_expired"):
            with Script([state("a") + end(reason)]) as url:
                stream = watch(url, end_user_token="token")
                self.assertEqual([usage["userId"] for usage in stream], ["a"])
            self.assertEqual(stream.reason, reason)
        for page in (b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", b"HTTP/1.1 204 No Content\r\n\r\n"):
            with Script([page], head=b"") as url:
                with self.assertRaises(HoldfastError) as failed:
                    next(iter(watch(url)))
            self.assertEqual(failed.exception.code, "bad_answer")

    def test_close_ends_a_watch_that_waits_in_another_thread(self) -> None:
        with Script([state("a")], is_open=True) as url:
            stream = watch(url)
            thread = threading.Thread(target=lambda: list(stream), daemon=True)
            thread.start()
            while stream._sock is None and thread.is_alive():
                time.sleep(0.001)
            time.sleep(0.05)
            stream.close()
            thread.join(LATE)
            self.assertFalse(thread.is_alive())

    def test_the_time_of_a_token_counts(self) -> None:
        page = client("http://127.0.0.1:9", timeout=0.01, max_retries=0, end_user_token=slow)
        with self.assertRaises(HoldfastError) as failed:
            page.usage_me()
        self.assertEqual(failed.exception.code, "timeout")
        self.assertIn("end_user_token", failed.exception.message)


def slow() -> str:
    time.sleep(0.02)
    return "token"


def client(url: str, **options: Any) -> Holdfast:
    return Holdfast(api_key="pk_live_x", base_url=url, **options)


def watch(url: str, **options: Any) -> Any:
    holdfast = client(url, **options)
    holdfast._transport.sleep = cast(Callable[[float], None], lambda _: None)
    return holdfast.watch_usage()


class Script:
    """A service whose connections say one text after another."""

    def __init__(self, texts: List[bytes], head: bytes = HEAD, is_open: bool = False) -> None:
        self._texts, self._head, self._is_open = texts, head, is_open
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: List[socket.socket] = []

    def _serve(self) -> None:
        for text in self._texts:
            connection, _ = self._listener.accept()
            connection.recv(65_536)
            piece = b"%x\r\n%s\r\n" % (len(text), text) if self._head else text
            connection.sendall(self._head + piece)
            if not self._is_open:
                connection.shutdown(socket.SHUT_WR)
            self._open.append(connection)

    def __enter__(self) -> str:
        threading.Thread(target=self._serve, daemon=True).start()
        address: Tuple[str, int] = self._listener.getsockname()
        return f"http://127.0.0.1:{address[1]}"

    def __exit__(self, *_: Any) -> None:
        for one in [*self._open, self._listener]:
            one.close()


if __name__ == "__main__":
    unittest.main()
