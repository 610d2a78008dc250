"""Verifies messages of webhooks, and signs tokens of end users."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import time
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from .errors import HoldfastError, invalid_input

TOLERANCE_SECONDS = 300
"""The most by which the time of a message may differ from this clock. An older message may be a replayed copy."""
SECRET_PREFIX = "whsec_"
LONGEST_TOKEN_SECONDS = 400 * 24 * 3600


def verify_webhook(
    *, secret: Union[str, Sequence[str]], headers: Mapping[str, Any], body: Union[str, bytes]
) -> Dict[str, Any]:
    """Verifies that a request is a message of the service, and returns the message: ``type``, ``timestamp``, ``data``.

    A message may arrive more than once, each time with the same ``webhook-id``: remember the ids that you have handled. Later
    versions of the service may send new types: answer 200 and ignore them.

    :param secret: the webhook's secret, ``whsec_...``; several if webhooks have the same address
    :param body: the unchanged body as text or bytes
    :raises HoldfastError: with code ``invalid_webhook``: answer 400 then, and do nothing
    """
    known = {str(name).lower(): value for name, value in headers.items()}
    message_id, timestamp, signatures = (
        _header(known, f"webhook-{name}") for name in ("id", "timestamp", "signature")
    )
    _check_time(timestamp)
    content = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    signed = f"{message_id}.{timestamp}.".encode("utf-8") + content
    presented = [given[3:] for given in signatures.split(" ") if given.startswith("v1,")]
    for key in [secret] if isinstance(secret, str) else secret:
        digest = hmac.new(_key_of(key), signed, hashlib.sha256).digest()
        expected = base64.b64encode(digest).decode("ascii")
        if any(hmac.compare_digest(expected.encode(), given.encode("utf-8")) for given in presented):
            return _message(content)
    raise _invalid("No signature matches this secret and body")


def sign_end_user_token(
    identity_secret: str, user_id: str, *, expires_in_seconds: float = 3600, mode: Optional[str] = None
) -> str:
    """Signs the token of an end user, for ``end_user_token`` of a client with a public key.

    :param identity_secret: the app's identity secret, which must never leave your backend
    :param mode: set to make the token valid with keys of one mode only
    """
    if not 0 < expires_in_seconds <= LONGEST_TOKEN_SECONDS:
        raise invalid_input("expires_in_seconds: must be greater than 0 and at most 400 days")
    now = time.time()
    expires = min(math.ceil(now + expires_in_seconds), math.floor(now + LONGEST_TOKEN_SECONDS))
    claims: Dict[str, Any] = {"userId": user_id, "exp": expires}
    if mode is not None:
        claims["mode"] = mode
    payload = _base64url(json.dumps(claims, separators=(",", ":"), ensure_ascii=False).encode("utf-8"))
    signature = hmac.new(identity_secret.encode("utf-8"), payload.encode("ascii"), hashlib.sha256).digest()
    return f"{payload}.{_base64url(signature)}"


def _key_of(secret: str) -> bytes:
    # An invalid secret is a mistake of the caller, not of the request.
    try:
        key = base64.b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(SECRET_PREFIX) or not key:
        raise ValueError('secret: must be "whsec_" and base64, as shown when the webhook was created')
    return key


def _header(headers: Mapping[str, Any], name: str) -> str:
    value = headers.get(name)
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if not isinstance(value, str) or not value:
        raise _invalid(f"Missing header: {name}")
    return value


def _check_time(timestamp: str) -> None:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise _invalid("Invalid header: webhook-timestamp")
    age = int(time.time()) - int(timestamp)
    if abs(age) > TOLERANCE_SECONDS:
        raise _invalid(f"The timestamp is outside the tolerance of {TOLERANCE_SECONDS} s: it is {age} s ago")


def _message(content: bytes) -> Dict[str, Any]:
    try:
        message = json.loads(content)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise _invalid("The body is not JSON")
    return message


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")


def _invalid(message: str) -> HoldfastError:
    return HoldfastError("invalid_webhook", 0, message)
