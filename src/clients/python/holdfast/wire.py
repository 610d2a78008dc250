"""Makes addresses and bodies from the input of a call."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any, Dict, Final, Mapping, Optional, Union
from urllib.parse import quote, urlencode

from .errors import invalid_input


class Omitted:
    """The type of ``OMIT``."""

    def __repr__(self) -> str:
        return "OMIT"


OMIT: Final = Omitted()
"""The default of members for which None means more than leaving them out."""


class Call:
    """A call in the form in which it is sent."""

    def __init__(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None,
        is_read: bool = False,
        timeout_min: float = 0,
        has_envelope: bool = True,
    ) -> None:
        self.method = method
        self.path = path
        """Under ``/api/v1``, with ids encoded."""
        self.body = None if body is None else members(body)
        self.query = {} if query is None else members(query)
        self.is_read = is_read or method == "GET"
        """Whether it changes nothing and so needs no idempotency key."""
        self.timeout_min = timeout_min
        """The least seconds for one try, unless the call itself sets them."""
        self.has_envelope = has_envelope
        """Whether the answer has its data in an envelope; a document has none."""

    @property
    def target(self) -> str:
        """The path with the query."""
        if not self.query:
            return self.path
        values = {name: _query_text(value) for name, value in self.query.items()}
        return f"{self.path}?{urlencode(values)}"

    @property
    def text(self) -> Optional[bytes]:
        """The JSON text of the body."""
        return None if self.body is None else text_of(self.body)


def members(given: Mapping[str, Any]) -> Dict[str, Any]:
    """The members that are not left out. None is left out; where it has a meaning, ``OMIT`` is the default."""
    return {
        name: value.value if isinstance(value, Null) else value
        for name, value in given.items()
        if value is not None and not isinstance(value, Omitted)
    }


class Null:
    """A None that is sent."""

    def __init__(self, value: None = None) -> None:
        self.value = value


def nullable(value: Any) -> Any:
    """A member for which None is sent as null."""
    return Null() if value is None else value


def text_of(body: Any) -> bytes:
    """The JSON text of a body. JSON has no NaN and no infinity."""
    try:
        text = json.dumps(body, allow_nan=False, separators=(",", ":"), ensure_ascii=False, default=_value)
        return text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise invalid_input(f"The input cannot be serialized as JSON: {error}") from error


def path_member(name: str, value: str) -> str:
    """Encodes an id as a part of a path."""
    if value in ("", ".", ".."):
        raise invalid_input(f'{name}: "{value}" is not possible in an address')
    return quote(value, safe="")


def _value(value: object) -> object:
    if isinstance(value, datetime):
        return _time_text(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _time_text(time: datetime) -> str:
    if time.tzinfo is None:
        raise invalid_input("A datetime must have a time zone")
    return time.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _query_text(value: Union[str, float, bool, datetime]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _time_text(value)
    return str(value)
