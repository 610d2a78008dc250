"""The error of a call that failed."""

from __future__ import annotations

from typing import Any, Optional


class HoldfastError(Exception):
    """The error of a call that failed.

    A reserve that is refused is an answer with ``allowed`` false and no error; a ``reservation`` and a
    metered call of a model raise it with the first reason as code.
    """

    code: str
    """The kind of the error: a code of the service, or ``network_error``, ``timeout``, ``bad_answer``
    or ``invalid_webhook``. Compare this member; later versions of the service may have more codes.
    """
    status: int
    """The HTTP status; 0 without an answer."""
    message: str
    details: Any
    """More about the error, for some codes; for ``invalid_request`` a list of ``path`` and ``message``."""
    request_id: Optional[str]
    """The id of the request in the service's log; None without an answer."""
    retry_after: Optional[float]
    """The seconds for which the service asks to wait before the next try; None if it does not ask."""

    def __init__(
        self,
        code: str,
        status: int,
        message: str,
        details: Any = None,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.message = message
        self.details = details
        self.request_id = request_id
        self.retry_after = retry_after

    def __repr__(self) -> str:
        return f"HoldfastError({self.code!r}, {self.status}, {self.message!r})"

    @property
    def may_pass(self) -> bool:
        """Whether the same call may succeed later."""
        passing = self.code in ("unavailable", "rate_limited", "network_error", "timeout")
        return passing or (self.code == "bad_answer" and self.status in (502, 503, 504))

    @property
    def is_unavailable(self) -> bool:
        """Whether the service could not decide. A rate limit is an answer."""
        if self.code == "rate_limited":
            return False
        failed = self.code == "bad_answer" and self.status >= 500
        return self.may_pass or self.code == "internal_error" or failed


def invalid_input(message: str) -> HoldfastError:
    """The error of an input that cannot be sent. It is raised before anything is sent."""
    return HoldfastError("invalid_request", 400, message)
