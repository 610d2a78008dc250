"""The packages `openai` and `anthropic`, metered: the real ones where they are installed, else stand-ins."""

import asyncio
import json
import os
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List

from holdfast import Holdfast, HoldfastError, meter_anthropic, meter_openai

try:
    from anthropic import Anthropic
    from openai import AsyncOpenAI, OpenAI
except ImportError:
    from sdk import Anthropic, OpenAI  # type: ignore[assignment]

    AsyncOpenAI = None  # type: ignore[assignment, misc]

holdfast = Holdfast(api_key=os.environ["HOLDFAST_KEY"], base_url=os.environ["HOLDFAST_URL"], timeout=20)
CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
QUESTION = [{"role": "user", "content": "Write a haiku."}]


def chunk(delta: Dict[str, Any], **more: Any) -> Dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": None}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini", "choices": choices, **more}


def message(content: List[Any], usage: Dict[str, Any]) -> Dict[str, Any]:
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    return {**head, "content": content, "stop_reason": None, "stop_sequence": None, "usage": usage}


CHAT = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o-mini",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Old pond"}}],
    "usage": CHAT_USAGE,
}
CHAT_EVENTS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Old "}),
    chunk({"content": "pond"}),
    {**chunk({}), "choices": [], "usage": CHAT_USAGE},
]
MESSAGE = message([{"type": "text", "text": "Old pond"}], {"input_tokens": 10, "output_tokens": 4})
MESSAGE_EVENTS = [
    {"type": "message_start", "message": message([], {"input_tokens": 10, "output_tokens": 1})},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Old pond"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]
EMBEDDINGS = {
    "object": "list",
    "model": "gpt-4o-mini",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 9, "total_tokens": 9},
}
IMAGES = {"created": 1, "data": [{"b64_json": "aW1n"}, {"b64_json": "aW1n"}]}


class ModelServer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    received: List[Dict[str, Any]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.received.append(body)
        if body.get("model") == "broken":
            return self._send(400, "application/json", json.dumps({"error": {"message": "no such model"}}))
        answers: Dict[str, Any] = {
            "/v1/chat/completions": (CHAT, CHAT_EVENTS),
            "/v1/messages": (MESSAGE, MESSAGE_EVENTS),
            "/v1/embeddings": (EMBEDDINGS, []),
            "/v1/images/generations": (IMAGES, []),
        }
        whole, events = answers[self.path]
        if not body.get("stream"):
            return self._send(200, "application/json", json.dumps(whole))
        lines = [f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n" for event in events]
        end = "" if self.path.endswith("messages") else "data: [DONE]\n\n"
        self._send(200, "text/event-stream", "".join(lines).replace("event: message\n", "") + end)

    def _send(self, status: int, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), ModelServer)
server.daemon_threads = True


def setUpModule() -> None:
    threading.Thread(target=server.serve_forever, daemon=True).start()


def tearDownModule() -> None:
    server.shutdown()
    server.server_close()


def address(path: str) -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


class ModelsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.user_id = f"model_{time.time_ns()}"
        holdfast.subscriptions.upsert(self.user_id, "Pro")
        self.options: Dict[str, Any] = {"client": holdfast, "user_id": self.user_id, "event": "chat.reply"}

    def used(self, event: str = "chat.reply") -> float:
        return holdfast.usage(self.user_id, event)["counters"][0]["count"]

    def openai(self, **more: Any) -> Any:
        sdk = OpenAI(api_key="sk", base_url=address("/v1"), max_retries=0)
        return meter_openai(sdk, **{**self.options, **more})

    def anthropic(self) -> Any:
        return meter_anthropic(Anthropic(api_key="sk", base_url=address(""), max_retries=0), **self.options)

    def test_an_answer_counts_what_the_model_reports(self) -> None:
        reply = self.openai().chat.completions.create(model="gpt-4o-mini", messages=QUESTION, max_tokens=50)
        self.assertEqual(reply.choices[0].message.content, "Old pond")
        self.assertEqual(self.used(), 14)

    def test_a_stream_asks_for_its_usage_and_hides_it(self) -> None:
        stream = self.openai().chat.completions.create(model="gpt-4o-mini", messages=QUESTION, stream=True)
        texts = [event.choices[0].delta.content for event in stream]
        self.assertEqual(texts, ["", "Old ", "pond"])
        self.assertEqual(ModelServer.received[-1]["stream_options"], {"include_usage": True})
        self.assertEqual(self.used(), 14)

    def test_a_stream_that_is_left_counts_what_was_read(self) -> None:
        stream = self.openai().chat.completions.create(model="gpt-4o-mini", messages=QUESTION, stream=True)
        events = iter(stream)
        for _ in range(2):
            next(events)
        stream.close()
        # A question of 44 bytes is 11 tokens by its size, four letters are one.
        self.assertEqual(self.used(), 12)

    def test_a_refused_call_is_not_sent(self) -> None:
        before = len(ModelServer.received)
        with self.assertRaises(HoldfastError) as refused:
            self.openai().chat.completions.create(model="gpt-4o-mini", messages=QUESTION, max_tokens=1_000_000)
        self.assertEqual(refused.exception.code, "limit_reached")
        self.assertEqual(len(ModelServer.received), before)

    def test_a_failed_call_is_released(self) -> None:
        with self.assertRaises(Exception):
            self.openai().chat.completions.create(model="broken", messages=QUESTION)
        self.assertEqual(self.used(), 0)

    def test_embeddings_and_images(self) -> None:
        self.openai().embeddings.create(model="gpt-4o-mini", input="pond", encoding_format="float")
        self.assertEqual(self.used(), 9)
        self.openai(event="image.render").images.generate(model="gpt-image-1", prompt="pond", n=3)
        self.assertEqual(self.used("image.render"), 2)

    def test_copies_are_metered(self) -> None:
        self.openai().with_options(max_retries=1).chat.completions.create(model="gpt-4o-mini", messages=QUESTION)
        self.assertEqual(self.used(), 14)

    def test_messages(self) -> None:
        asked: Dict[str, Any] = {"model": "claude-sonnet-4-5", "messages": QUESTION, "max_tokens": 50}
        reply = self.anthropic().messages.create(**asked)
        self.assertEqual(reply.content[0].text, "Old pond")
        self.assertEqual(self.used(), 14)
        events = list(self.anthropic().messages.create(**asked, stream=True))
        self.assertEqual(len(events), 6)
        self.assertEqual(self.used(), 28)

    @unittest.skipIf(AsyncOpenAI is None, "needs the package openai")
    def test_an_asynchronous_client(self) -> None:
        async def work() -> None:
            sdk = AsyncOpenAI(api_key="sk", base_url=address("/v1"), max_retries=0)
            openai: Any = meter_openai(sdk, **self.options)
            await openai.chat.completions.create(model="gpt-4o-mini", messages=QUESTION)
            stream = await openai.chat.completions.create(model="gpt-4o-mini", messages=QUESTION, stream=True)
            async for _ in stream:
                pass

        asyncio.run(work())
        self.assertEqual(self.used(), 28)


if __name__ == "__main__":
    unittest.main()
