"""Reads values in the shapes of model servers: text, whether the model did any work, and the report of the usage.

Any compatible server may have written an answer, so each member may be missing.
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, List, Mapping, Optional

ANSWER_TOKENS = 1024
"""The output tokens held for a call without a limit."""
MEDIA_TOKENS = 1024
"""Estimated tokens of one inline image, file or sound."""
BYTES_PER_TOKEN = 4
NO_WORK = frozenset(["role", "type", "annotations", "logprobs"])
"""Members of messages and their parts that are there before the model has written anything."""


def loose(value: Any) -> Dict[str, Any]:
    """The members of an object, also of the packages' models; of any other value none."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        dumped = dump(mode="json", by_alias=True, warnings=False)
        return dumped if isinstance(dumped, dict) else {}
    return dict(vars(value)) if hasattr(value, "__dict__") else {}


def items(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def text_of(value: Any) -> str:
    """A text, or the texts of a list of parts, thoughts and refusals included."""
    if isinstance(value, str):
        return value
    texts = []
    for part in items(value):
        known = loose(part)
        texts.append(text_of(known.get("text") or known.get("thinking") or known.get("refusal")))
    return "".join(texts)


class Shape:
    """What an answer of one kind of call looks like."""

    event = ""
    """The event of calls by default."""
    has_output = True

    def text(self, answer: Dict[str, Any]) -> str:
        """The text of a complete answer."""
        return ""

    def event_text(self, event: Dict[str, Any]) -> str:
        """The text in one event of a stream."""
        return ""

    def shows_work(self, value: Dict[str, Any]) -> bool:
        """Whether an answer or an event has any work of the model."""
        return False

    def report(self, value: Dict[str, Any], known: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
        """The report after an answer or event.

        :param known: the report before it
        """
        usage = loose(value.get("usage"))
        return usage or known

    def asking_for_usage(self, body: Dict[str, Any]) -> Dict[str, Any]:
        """The body, changed so that a stream has its usage."""
        return body

    def is_hidden(self, event: Dict[str, Any], body: Mapping[str, Any]) -> bool:
        """Whether an event is there only because we asked for the usage."""
        return False


class Chat(Shape):
    event = "openai.chat"

    def text(self, answer: Dict[str, Any]) -> str:
        return "".join(_chat_text(loose(choice).get("message")) for choice in items(answer.get("choices")))

    def event_text(self, event: Dict[str, Any]) -> str:
        return "".join(_chat_text(loose(choice).get("delta")) for choice in items(event.get("choices")))

    def shows_work(self, value: Dict[str, Any]) -> bool:
        return any(
            _is_written(loose(choice).get("message")) or _is_written(loose(choice).get("delta"))
            for choice in items(value.get("choices"))
        )

    def asking_for_usage(self, body: Dict[str, Any]) -> Dict[str, Any]:
        if not body.get("stream"):
            return body
        return {**body, "stream_options": {**loose(body.get("stream_options")), "include_usage": True}}

    def is_hidden(self, event: Dict[str, Any], body: Mapping[str, Any]) -> bool:
        asked = loose(body.get("stream_options")).get("include_usage") is True
        return not asked and bool(event.get("usage")) and not items(event.get("choices"))


class Responses(Shape):
    event = "openai.responses"

    def text(self, answer: Dict[str, Any]) -> str:
        texts = []
        for item in items(answer.get("output")):
            known = loose(item)
            written = known.get("arguments") or known.get("input")
            texts += [text_of(written), text_of(known.get("content")), text_of(known.get("summary"))]
        return "".join(texts)

    def event_text(self, event: Dict[str, Any]) -> str:
        return text_of(event.get("delta")) if str(event.get("type")).endswith(".delta") else ""

    def shows_work(self, value: Dict[str, Any]) -> bool:
        if str(value.get("type")).endswith(".delta"):
            return bool(value.get("delta"))
        parts = [value.get("item"), *items(value.get("output")), *items(loose(value.get("response")).get("output"))]
        for part in map(loose, parts):
            if part.get("type") == "message":
                if any(_is_written(piece) for piece in items(part.get("content"))):
                    return True
            elif part.get("type"):
                return True
        return False

    def report(self, value: Dict[str, Any], known: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
        return loose(value.get("usage")) or loose(loose(value.get("response")).get("usage")) or known


class Embeddings(Shape):
    event = "openai.embeddings"
    has_output = False

    def shows_work(self, value: Dict[str, Any]) -> bool:
        return bool(items(value.get("data")))


class Images(Shape):
    event = "openai.images"
    has_output = False

    def shows_work(self, value: Dict[str, Any]) -> bool:
        return self.count(value) > 0

    def count(self, value: Dict[str, Any]) -> int:
        """The images that came: drafts are events too, and no images."""
        kinds = ("image_generation.completed", "image_edit.completed")
        return 1 if value.get("type") in kinds else len(items(value.get("data")))


class Messages(Shape):
    event = "anthropic.messages"

    def text(self, answer: Dict[str, Any]) -> str:
        return "".join(_block_text(loose(block)) for block in items(answer.get("content")))

    def event_text(self, event: Dict[str, Any]) -> str:
        delta = loose(event.get("delta"))
        return "".join(text_of(delta.get(name)) for name in ("text", "thinking", "partial_json"))

    def shows_work(self, value: Dict[str, Any]) -> bool:
        if value.get("type") == "content_block_delta":
            return True
        block = loose(value.get("content_block"))
        return block.get("type") not in (None, "text", "thinking") or bool(items(value.get("content")))

    def report(self, value: Dict[str, Any], known: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
        """The latest value of each member: those of a stream are totals, and never added up."""
        usage = loose(value.get("usage")) or loose(loose(value.get("message")).get("usage"))
        given = {name: member for name, member in usage.items() if member is not None}
        return {**(known or {}), **given} or None


def input_tokens_of(values: List[Any]) -> int:
    """Estimates the tokens of an input: texts at any depth by size, media at a flat rate, lists of tokens by length."""
    size = 0
    tokens = 0
    for value in values:
        if value is None:
            continue
        counted = _listed_tokens(value)
        if counted is not None:
            tokens += counted
            continue
        plain, media = _without_media(value, "")
        tokens += media * MEDIA_TOKENS
        size += len(json.dumps(plain, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8"))
    return math.ceil(size / BYTES_PER_TOKEN) + tokens


def asks_for_cache(value: Any) -> "tuple[bool, bool]":
    """Whether a member ``cache_control`` anywhere asks for caching, and for an hour of it."""
    if isinstance(value, Mapping):
        control = value.get("cache_control")
        own = control is not None
        found = [(own, own and loose(control).get("ttl") == "1h"), *map(asks_for_cache, value.values())]
    elif isinstance(value, (list, tuple)):
        found = [asks_for_cache(part) for part in value]
    else:
        return False, False
    return any(is_cached for is_cached, _ in found), any(for_hour for _, for_hour in found)


def tokens_of(text: str) -> int:
    """Estimates the tokens of a text by its size."""
    return math.ceil(len(text.encode("utf-8")) / BYTES_PER_TOKEN)


def _listed_tokens(value: Any) -> Optional[int]:
    if not isinstance(value, (list, tuple)) or not value:
        return None
    if all(isinstance(token, int) for token in value):
        return len(value)
    lists = [_listed_tokens(part) for part in value if isinstance(part, (list, tuple))]
    if len(lists) < len(value) or any(count is None for count in lists):
        return None
    return sum(count or 0 for count in lists)


def _without_media(value: Any, name: str) -> "tuple[Any, int]":
    """A value with its inline media left out, and how many they were."""
    if isinstance(value, (bytes, bytearray)):
        return "", 1
    if isinstance(value, str):
        is_media = value.startswith("data:") or (name in ("data", "file_data") and len(value) > 200)
        return ("", 1) if is_media else (value, 0)
    if isinstance(value, Mapping):
        parts = {str(key): _without_media(member, str(key)) for key, member in value.items()}
        return {key: part for key, (part, _) in parts.items()}, sum(count for _, count in parts.values())
    if isinstance(value, (list, tuple)):
        listed = [_without_media(member, name) for member in value]
        return [part for part, _ in listed], sum(count for _, count in listed)
    if hasattr(value, "model_dump"):
        return _without_media(loose(value), name)
    return value, 0


def _chat_text(message: Any) -> str:
    known = loose(message)
    calls = [{"function": known.get("function_call")}, *items(known.get("tool_calls"))]
    texts = [known.get("content"), known.get("reasoning_content") or known.get("reasoning"), known.get("refusal")]
    for call in map(loose, calls):
        called = loose(call.get("function") or call.get("custom"))
        texts += [called.get("name"), called.get("arguments") or called.get("input")]
    return "".join(text_of(text) for text in texts)


def _block_text(block: Dict[str, Any]) -> str:
    written = block.get("input")
    tool = json.dumps(written, ensure_ascii=False) if isinstance(written, dict) else ""
    return text_of(block.get("text") or block.get("thinking")) + tool


def _is_written(message: Any) -> bool:
    return any(value and name not in NO_WORK for name, value in loose(message).items())
