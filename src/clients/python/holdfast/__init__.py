"""The client of Holdfast: metering and entitlements for products that resell AI."""

from .client import Holdfast
from .errors import HoldfastError
from .models import meter_anthropic, meter_openai
from .reservation import Reservation
from .stream import UsageStream
from .webhooks import sign_end_user_token, verify_webhook
from .wire import OMIT

__all__ = [
    "OMIT",
    "Holdfast",
    "HoldfastError",
    "Reservation",
    "UsageStream",
    "meter_anthropic",
    "meter_openai",
    "sign_end_user_token",
    "verify_webhook",
]
