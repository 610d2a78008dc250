"""The packages ``openai`` and ``anthropic``, metered.

Every call of a model is reserved before it is sent, and settled when its answer has been read: streams, tools and parsed
answers too. Retries of one call share its reservation.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Mapping, Optional, TypeVar, Union, cast

from .client import Holdfast
from .errors import invalid_input
from .reservation import Reservation
from .shapes import (
    ANSWER_TOKENS,
    Chat,
    Embeddings,
    Images,
    Messages,
    Responses,
    Shape,
    asks_for_cache,
    input_tokens_of,
    loose,
    tokens_of,
)
from .types import Metadata, ModelUsage

SDK = TypeVar("SDK")
UserId = Union[str, Callable[[Mapping[str, Any]], str]]
"""A user's id, or a function that returns it for the body of each call."""

OPENAI: Dict[str, Shape] = {
    "/chat/completions": Chat(),
    "/responses": Responses(),
    "/embeddings": Embeddings(),
    "/images/generations": Images(),
    "/images/edits": Images(),
    "/images/variations": Images(),
}
ANTHROPIC: Dict[str, Shape] = {"/v1/messages": Messages()}
FREE = ("/models", "/v1/models", "/v1/messages/count_tokens")
"""Calls that cost nothing."""
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
INPUTS = (
    "messages", "input", "instructions", "system", "tools", "functions", "response_format", "text", "prompt",
)  # fmt: skip


def meter_openai(
    openai: SDK,
    *,
    client: Holdfast,
    user_id: UserId,
    event: Optional[str] = None,
    metadata: Optional[Metadata] = None,
    ttl_seconds: Optional[float] = None,
) -> SDK:
    """Makes a metered client of the package ``openai`` from another one, also from an asynchronous one.

    It meters chat completions, responses, embeddings and images. A refused call raises ``HoldfastError`` with the first reason
    as code, and nothing is sent to the model. Other calls pass unmetered, with one warning for each kind.

    :param event: by default ``openai.chat``, ``openai.responses``, ``openai.embeddings`` or ``openai.images``, by the call
    :param metadata: sent with every call, beside its ``model``
    :param ttl_seconds: how long a call's reservation lasts: choose more than the longest answer takes
    """
    return _metered(openai, _Meter(client, user_id, event, metadata, ttl_seconds, OPENAI))


def meter_anthropic(
    anthropic: SDK,
    *,
    client: Holdfast,
    user_id: UserId,
    event: Optional[str] = None,
    metadata: Optional[Metadata] = None,
    ttl_seconds: Optional[float] = None,
) -> SDK:
    """Makes a metered client of the package ``anthropic`` from another one, also from an asynchronous one.

    It meters messages as ``meter_openai`` meters its calls. The default event is ``anthropic.messages``.
    """
    return _metered(anthropic, _Meter(client, user_id, event, metadata, ttl_seconds, ANTHROPIC))


class _Meter:
    def __init__(
        self,
        client: Holdfast,
        user_id: UserId,
        event: Optional[str],
        metadata: Optional[Metadata],
        ttl_seconds: Optional[float],
        shapes: Mapping[str, Shape],
    ) -> None:
        self._client = client
        self._user_id = user_id
        self._event = event
        self._metadata = metadata
        self._ttl_seconds = ttl_seconds
        self._shapes = shapes
        self._warned: List[str] = []

    def shape_of(self, options: Any) -> Optional[Shape]:
        """The shape of a request's answer; None for a call that passes unmetered."""
        path = str(options.url).split("?")[0]
        shape = self._shapes.get(path)
        if shape is None and options.method.lower() != "get" and path not in FREE:
            kind = "/" + path.lstrip("/").split("/")[0]
            if kind not in self._warned:
                self._warned.append(kind)
                warnings.warn(f"holdfast: calls of {kind} are not metered", stacklevel=4)
        return shape

    def open(self, shape: Shape, body: Dict[str, Any]) -> _Call:
        """Reserves for a call."""
        if body.get("background") is True:
            raise invalid_input("background: must not be true, because the answer could not be metered")
        model = body.get("model")
        metadata = {**(self._metadata or {}), **({"model": model} if isinstance(model, str) else {})}
        several = body["n"] if isinstance(body.get("n"), int) else 1
        limits = [body[name] for name in LIMITS if isinstance(body.get(name), int)]
        tokens = input_tokens_of([body.get(name) for name in INPUTS])
        is_cached, for_hour = asks_for_cache(body)
        reservation = self._client.reservation(
            self._user_id(body) if callable(self._user_id) else self._user_id,
            self._event or shape.event,
            metadata=metadata,
            input_tokens=tokens,
            cache_write_tokens=tokens if is_cached else None,
            cache_write_1h_tokens=tokens if for_hour else None,
            max_output_tokens=max(limits or [ANSWER_TOKENS]) * several if shape.has_output else None,
            count=several if isinstance(shape, Images) else None,
            ttl_seconds=self._ttl_seconds,
        )
        return _Call(shape, body, reservation.__enter__())


class _Call:
    """A call in flight. It is settled once, by its first end."""

    def __init__(self, shape: Shape, body: Dict[str, Any], reservation: Reservation) -> None:
        self._shape = shape
        self._body = body
        self._reservation = reservation
        self._text: List[str] = []
        self._report: Optional[Dict[str, Any]] = None
        self._images = 0
        self._has_work = False
        self._is_settled = False

    def take(self, value: Any, is_event: bool) -> bool:
        """Reads an answer, or an event of one. Returns whether its caller sees it."""
        known = loose(value)
        self._text.append(self._shape.event_text(known) if is_event else self._shape.text(known))
        self._has_work = self._has_work or self._shape.shows_work(known)
        self._report = self._shape.report(known, self._report)
        if isinstance(self._shape, Images):
            self._images += self._shape.count(known)
        return not (is_event and self._shape.is_hidden(known, self._body))

    def finish(self) -> None:
        """Settles a complete call; one without a report and without any work of the model has failed."""
        self._settle("empty_answer")

    def leave(self, error: Optional[BaseException] = None) -> None:
        """Settles a call that broke off, or that its caller stopped reading."""
        self._settle("abandoned" if error is None else type(error).__name__)

    def _settle(self, error_code: str) -> None:
        if self._is_settled:
            return
        self._is_settled = True
        work = self._reservation
        if not self._has_work and self._report is None:
            work.fail(error_code)
            return
        asked = work._asked
        written = tokens_of("".join(self._text))
        estimate: ModelUsage = {"inputTokens": asked["inputTokens"], "outputTokens": written}
        if self._images > 0:
            report = self._report or {}
            tokens = {"inputTokens": report.get("input_tokens"), "outputTokens": report.get("output_tokens")}
            known = {name: value for name, value in tokens.items() if isinstance(value, int)}
            work.actual = {"count": self._images}
            usage = {**(known if len(known) == 2 else {}), "calls": self._images}
            work.usage = cast(ModelUsage, usage)
        elif self._report is not None:
            work.provider_usage = self._report
        else:
            work.usage = estimate
        work.settle(estimate)


def _metered(sdk: SDK, meter: _Meter) -> SDK:
    source: Any = sdk
    metered: Any = source.copy()
    request = metered.request
    copied = metered.copy

    if inspect.iscoroutinefunction(source.request):

        async def request_async(cast_to: Any, options: Any, **rest: Any) -> Any:
            shape = meter.shape_of(options)
            if shape is None:
                return await request(cast_to, options, **rest)
            _refuse_unread(options)
            body = loose(options.json_data)
            call = await asyncio.to_thread(meter.open, shape, body)
            options = _with_body(options, shape.asking_for_usage(body))
            try:
                answer = await request(cast_to, options, **rest)
            except BaseException as error:
                await asyncio.shield(asyncio.to_thread(call.leave, error))
                raise
            parsed = _parsed(answer)
            if inspect.isawaitable(parsed):
                parsed = await parsed
            if hasattr(parsed, "_iterator"):
                parsed._iterator = _read_async(parsed._iterator, call)
                close = parsed.close

                async def leave_async() -> None:
                    await asyncio.to_thread(call.leave)
                    await close()

                parsed.close = leave_async
                return answer
            call.take(parsed, False)
            await asyncio.to_thread(call.finish)
            return answer

        metered.request = request_async
    else:

        def request_sync(cast_to: Any, options: Any, **rest: Any) -> Any:
            shape = meter.shape_of(options)
            if shape is None:
                return request(cast_to, options, **rest)
            _refuse_unread(options)
            body = loose(options.json_data)
            call = meter.open(shape, body)
            options = _with_body(options, shape.asking_for_usage(body))
            try:
                answer = request(cast_to, options, **rest)
            except BaseException as error:
                call.leave(error)
                raise
            parsed = _parsed(answer)
            if hasattr(parsed, "_iterator"):
                parsed._iterator = _read(parsed._iterator, call)
                close = parsed.close

                def leave() -> None:
                    call.leave()
                    close()

                parsed.close = leave
                return answer
            call.take(parsed, False)
            call.finish()
            return answer

        metered.request = request_sync

    def copy(*args: Any, **rest: Any) -> Any:
        return _metered(copied(*args, **rest), meter)

    metered.copy = metered.with_options = copy
    result: SDK = metered
    return result


def _read(source: Iterator[Any], call: _Call) -> Iterator[Any]:
    """Passes events on, and settles at the end, also when the reader stops before."""
    try:
        for event in source:
            if call.take(event, True):
                yield event
        call.finish()
    except GeneratorExit:
        call.leave()
        raise
    except BaseException as error:
        call.leave(error)
        raise


async def _read_async(source: AsyncIterator[Any], call: _Call) -> AsyncIterator[Any]:
    try:
        async for event in source:
            if call.take(event, True):
                yield event
        await asyncio.to_thread(call.finish)
    except (GeneratorExit, asyncio.CancelledError):
        call.leave()
        raise
    except BaseException as error:
        await asyncio.to_thread(call.leave, error)
        raise


def _with_body(options: Any, body: Dict[str, Any]) -> Any:
    if body is options.json_data or not body:
        return options
    changed = options.copy() if not hasattr(options, "model_copy") else options.model_copy()
    changed.json_data = body
    return changed


def _refuse_unread(options: Any) -> None:
    """The body of such an answer is read outside of the package, where nothing can be counted."""
    headers = loose(options.headers) if not isinstance(options.headers, Mapping) else options.headers
    if headers.get("X-Stainless-Raw-Response") == "stream":
        raise invalid_input("with_streaming_response: cannot be metered; use stream=True")


def _parsed(answer: Any) -> Any:
    """The answer of ``with_raw_response`` has the parsed one within."""
    parse = getattr(answer, "parse", None)
    if callable(parse) and hasattr(answer, "http_response"):
        return parse()
    return answer

