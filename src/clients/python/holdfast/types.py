"""The inputs and answers of the API as types. Written by `deno task client:types` from the API's OpenAPI document.

Change the document's schemas, not this file. Times in answers are ISO 8601 text in UTC.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Sequence, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Moment = Union[str, datetime]
"""A time in an input: ISO 8601 text with its offset from UTC, or a datetime with a time zone."""


ServiceErrorCode = Literal[
        "unavailable", "invalid_key", "invalid_or_expired_token", "not_found",
        "method_not_allowed", "requires_secret_key", "forbidden", "rate_limited",
        "payload_too_large", "invalid_request", "idempotency_conflict", "not_implemented",
        "workspace_limit_reached", "test_quota_exceeded", "credit_pack_not_found",
        "invalid_quantity", "credit_balance_not_found", "alias_conflict", "alias_cycle",
        "parent_cycle", "path_too_long", "consent_required", "reservation_not_pending",
        "run_ended", "already_canceled", "trial_used", "catalog_in_use", "no_subscription",
        "unmatched_event", "unpriced_model", "limit_reached", "reservation_headroom_exceeded",
        "member_limit_reached", "run_limit_reached", "rate_limit_reached",
        "concurrency_limit_reached", "ai_budget_exceeded", "generation_failed", "not_processed",
        "internal_error"
    ]
"""Every error code of the service."""


Mode = Literal["live", "test"]
"""The mode of a key. Live and test share the catalog and no data."""


Unit = Literal["count", "tokens", "seconds", "cents", "credits"]
"""The unit of a limit group or credit balance."""


Metadata = Mapping[str, Any]
"""Metadata of an event: any JSON object of up to 16 KiB. Limit groups can match its members."""


class MatchRule(TypedDict):
    """Which events a limit group or a credit balance covers."""

    event: str
    """An event type, a prefix with a final "*", or "*"."""
    metadata: NotRequired[Dict[str, str]]
    """Values that the call's metadata must have."""


class Period(TypedDict):
    """The current window of a plan."""

    start: str
    end: Union[str, None]
    """null for a lifetime period."""


class Counter(TypedDict):
    """The usage of a limit group in its current window."""

    groupId: str
    event: str
    """The pattern of the first rule of the group."""
    label: str
    unit: Unit
    quota: float
    count: float
    """Used and held."""
    remaining: float
    costCents: float
    """The cost of the counted events, without open holds."""
    filters: Dict[str, List[str]]
    """The distinct metadata values in the rules of the group."""
    overage: NotRequired[float]
    """Present where the group has overage: the part of the count that was sold past the quota.
    It uses up none of the quota.
    """
    overageMax: NotRequired[Union[float, None]]
    """Present where the group has overage: the most in force, of the catalog or the user's own
    cap; null for no limit.
    """
    period: NotRequired[Union[Period, None]]
    """Present where the group has a period of its own: its running window; null where none
    runs, and for a guard.
    """
    window: NotRequired[CounterWindow]
    """Present for a guard: a rate or a concurrency limit. count is what counts now."""


class CounterWindow(TypedDict):
    """Of a rate or a concurrency limit: what counts now."""

    type: Literal["rolling", "concurrent"]
    seconds: NotRequired[float]
    """Of a rate."""


class CreditBalance(TypedDict):
    """A balance of credits."""

    balanceId: str
    packId: str
    packName: str
    packItemId: Union[str, None]
    """null for a pack without items."""
    kind: Literal["per_type", "generic"]
    unit: Unit
    remaining: float
    initial: float
    grantedAt: str
    expiresAt: Union[str, None]
    """null: never."""
    status: Literal["active", "expired", "depleted", "revoked"]
    matches: List[MatchRule]
    priority: float
    """Balances with a higher priority are used first."""
    origin: NotRequired[Union[Literal["plan", "rollover", "topup"], None]]
    """Present where the catalog has plans that include packs, or packs with a price. plan:
    included in the plan for its running window; rollover: left of an earlier window; topup:
    bought by itself; null: any other grant.
    """


class SubscriptionRef(TypedDict):
    """A subscription in a report."""

    subscriptionId: str
    planId: str
    planName: str
    provider: Union[str, None]
    externalId: Union[str, None]
    startedAt: str
    endsAt: Union[str, None]


FeatureValue = Union[bool, float, str, List[str]]
"""The value of a feature."""


Feature = TypedDict("Feature", {
    "value": 'FeatureValue',
    "from": 'Literal["custom", "plan", "addon", "default"]',
    "of": 'Union[str, None]',
})
"""A feature in force."""


class DuplicateActiveSubscriptions(TypedDict):
    """Several active subscriptions of one user."""

    primary: SubscriptionRef
    """The subscription that grants the plan."""
    duplicates: List[SubscriptionRef]


class HeldSize(TypedDict):
    """Size of future work. Which member counts depends on each group's unit."""

    count: NotRequired[Union[float, None]]
    """How many: units in limit groups that count; also multiplies the price of a call or image.
    Default 1.
    """
    inputTokens: NotRequired[Union[float, None]]
    """Tokens in limit groups in tokens; also priced in cents by the model's price."""
    inputCostCents: NotRequired[Union[float, None]]
    """Cents in limit groups in cents, instead of the model's price of the input."""
    runId: NotRequired[Union[str, None]]
    """A run of the user: the call is refused where a limit of the run, or of a run around it,
    leaves no room.
    """
    maxOutputTokens: NotRequired[Union[float, None]]
    """Maximum output tokens: reserved together with inputTokens, and priced in cents by the
    model's price.
    """


class ModelUsage(TypedDict):
    """Usage as the model server reported it: final tokens, priced in cents and credits by the
    catalog. Cached tokens and cache writes are parts of inputTokens, reasoningTokens is a
    part of outputTokens. Not together with costCents or with other amounts of tokens, cents
    or credits.
    """

    inputTokens: NotRequired[Union[float, None]]
    """The whole input, cached tokens and cache writes included."""
    cachedInputTokens: NotRequired[Union[float, None]]
    """The part of the input read from the cache of the provider."""
    cacheWriteTokens: NotRequired[Union[float, None]]
    """The part of the input written to the cache of the provider."""
    cacheWrite1hTokens: NotRequired[Union[float, None]]
    """The part of cacheWriteTokens that is kept for an hour."""
    outputTokens: NotRequired[Union[float, None]]
    """The whole output, reasoning included."""
    reasoningTokens: NotRequired[Union[float, None]]
    """The part of the output spent on reasoning."""
    seconds: NotRequired[Union[float, None]]
    """Default: the held seconds; in a track the quantity."""
    calls: NotRequired[Union[float, None]]
    """Calls, or images, of a model with a price per call. Default: the count of the call."""


class Fit(TypedDict):
    """How a call may be made smaller until it is allowed."""

    minOutputTokens: int
    """The fewest output tokens that are of use; at most maxOutputTokens."""
    models: NotRequired[Union[Sequence[str], None]]
    """Models to try after metadata.model, in order of preference; at most 20, each once."""


class Fitted(TypedDict):
    """What a call was made to fit to."""

    model: Union[str, None]
    maxOutputTokens: float


class ReserveOptions(HeldSize):
    """Options of a reserve."""

    fit: NotRequired[Union[Fit, None]]
    """Makes the call smaller until it is allowed: the first model that passes with
    minOutputTokens, with the most output tokens up to maxOutputTokens.
    """
    ttlSeconds: NotRequired[Union[float, None]]
    """How long the reservation lasts. Default: the app's reservationTtlSeconds."""
    prompt: NotRequired[Union[str, None]]
    """Stored while prompt logging is on, unless the user opted out of it."""


ReserveReason = Literal[
        "limit_reached", "reservation_headroom_exceeded", "unmatched_event", "no_subscription",
        "unpriced_model", "member_limit_reached", "run_limit_reached", "rate_limit_reached",
        "concurrency_limit_reached"
    ]
"""Why a reserve is not allowed."""


class ReservedGroup(TypedDict):
    """A limit group in a reserve's answer."""

    groupId: str
    unit: Unit
    quota: float
    current: float
    headroomGate: NotRequired[float]
    """The effective limit, where headroom is configured."""
    overage: NotRequired[float]
    """Present where the group has overage: the part of the count that was sold past the quota.
    It uses up none of the quota.
    """
    label: NotRequired[str]
    """Present, like resetsAt, if the group has no room for a refused call."""
    resetsAt: NotRequired[Union[str, None]]
    """When the window ends; null for a lifetime, a guard, and a session that has not begun."""


class LevelGroups(TypedDict):
    """The limit groups of a user above."""

    userId: str
    groups: List[ReservedGroup]


class RunState(TypedDict):
    """The limits of a run after the call."""

    runId: str
    limits: List[RunLimit]


class ReserveReply(TypedDict):
    """The answer to a reserve as the service writes it."""

    allowed: bool
    matched: bool
    """false if no limit group and no credits cover the event, or the user has no subscription."""
    reservationId: NotRequired[str]
    """Present if allowed."""
    expiresAt: NotRequired[str]
    reasons: NotRequired[List[ReserveReason]]
    groups: NotRequired[List[ReservedGroup]]
    refusedBy: NotRequired[List[str]]
    """Of a refused call with a runId, or of a user with a parent: the ids of the users that
    refuse, in the order of the path, then those of runs, innermost first.
    """
    retryAfterMs: NotRequired[Union[float, None]]
    """Present where rates and concurrency limits alone refuse: how long until the same call
    passes them, unless another call or a settlement comes first; null where it never does.
    """
    levels: NotRequired[List[LevelGroups]]
    """Present if the user has a parent: the users above, nearest first."""
    runs: NotRequired[List[RunState]]
    """With a runId: the run and those around it, innermost first, after the call."""
    credits: NotRequired[CreditCost]
    """What the call costs in credits, of a hold at most; present if the catalog has rates."""
    fitted: NotRequired[Fitted]
    """With fit, if allowed: the model and the output tokens that are held."""
    warnings: NotRequired[List[Warning]]
    """"unknown_member: metdata": the call has no such member and was answered without it.
    unpriced_model: a limit group in cents covers the event, but the call has no price.
    unrated_event: credits are counted for the event, but no rate says how many.
    tier_unpriced: the usage names another service tier than the standard one, and was priced
    as the standard one. quantity_not_counted: quantity is above 1, but no matched limit group
    or balance counts it; use count.
    """


class Extra(TypedDict):
    """Amounts to add to what was held; negative ones subtract."""

    count: NotRequired[Union[float, None]]
    tokens: NotRequired[Union[float, None]]
    outputTokens: NotRequired[Union[float, None]]
    cents: NotRequired[Union[float, None]]
    outputCostCents: NotRequired[Union[float, None]]
    seconds: NotRequired[Union[float, None]]
    credits: NotRequired[Union[float, None]]


class Actual(TypedDict):
    """Final amounts, in place of what was held."""

    count: NotRequired[Union[float, None]]
    tokens: NotRequired[Union[float, None]]
    cents: NotRequired[Union[float, None]]
    seconds: NotRequired[Union[float, None]]
    credits: NotRequired[Union[float, None]]


class CommitOptions(TypedDict):
    """Options of a commit: what the work used."""

    extra: NotRequired[Union[Extra, None]]
    """Added to the reserved amounts; not for a unit that actual has."""
    actual: NotRequired[Union[Actual, None]]
    """Replaces the reserved amounts."""
    costCents: NotRequired[Union[float, None]]
    """The total cost of the event, for reports; not together with cents in extra or actual.
    Limit groups in cents count it only if the model is priced per second.
    """
    usage: NotRequired[Union[ModelUsage, None]]
    """Usage as the model server reported it: final tokens, priced in cents and credits by the
    catalog. Cached tokens and cache writes are parts of inputTokens, reasoningTokens is a
    part of outputTokens. Not together with costCents or with other amounts of tokens, cents
    or credits.
    """
    providerUsage: NotRequired[Union[Metadata, None]]
    """The usage object of OpenAI and servers compatible with it, Anthropic, Gemini
    (usageMetadata), Bedrock or the AI SDK, unchanged, instead of usage. A part larger than
    its whole is added to it, and what a total has above input and output is output.
    """
    response: NotRequired[Union[str, None]]
    """Cut after 32768 bytes of UTF-8."""


class Cost(TypedDict):
    """What an event cost."""

    cents: float
    priced: bool
    """Whether the model has a price."""
    model: Union[str, None]
    """The id of the price."""


class CreditCost(TypedDict):
    """What a call costs in credits."""

    total: float
    rated: bool
    """Whether a rate of the catalog gives the credits."""


Warning = str
"""A warning of an answer, such as `unpriced_model`."""


class CommittedGroup(TypedDict):
    """A limit group after a commit."""

    groupId: str
    unit: Unit
    quota: float
    current: float
    overflow: bool
    """Whether this commit took the counter above its quota, beyond what is sold."""
    overage: NotRequired[float]
    """Present where the group has overage: the part of the count that was sold past the quota.
    It uses up none of the quota.
    """


class Uncovered(TypedDict):
    """By unit, the amount that neither plan nor credits could cover."""

    count: NotRequired[float]
    tokens: NotRequired[float]
    seconds: NotRequired[float]
    cents: NotRequired[float]
    credits: NotRequired[float]


class CommitAnswerLevels(TypedDict):
    """Members of CommitAnswerLevels."""

    userId: str
    groups: List[CommittedGroup]
    uncovered: Uncovered


class CommitAnswer(TypedDict):
    """The answer to a commit."""

    eventId: str
    groups: List[CommittedGroup]
    levels: NotRequired[List[CommitAnswerLevels]]
    """Present if the user has a parent: the users above, nearest first."""
    recharged: bool
    """Whether the reservation had expired and was charged again."""
    cost: Cost
    credits: NotRequired[CreditCost]
    """What the call costs in credits, of a hold at most; present if the catalog has rates."""
    warnings: NotRequired[List[Warning]]
    """"unknown_member: metdata": the call has no such member and was answered without it.
    unpriced_model: a limit group in cents covers the event, but the call has no price.
    unrated_event: credits are counted for the event, but no rate says how many.
    tier_unpriced: the usage names another service tier than the standard one, and was priced
    as the standard one. quantity_not_counted: quantity is above 1, but no matched limit group
    or balance counts it; use count.
    """


class ReleaseOptions(TypedDict):
    """Options of a release."""

    reason: NotRequired[Union[str, None]]
    """Cut after 500 characters."""
    errorCode: NotRequired[Union[str, None]]
    """Cut after 100 characters."""
    response: NotRequired[Union[str, None]]
    """Cut after 32768 bytes of UTF-8."""


class TrackOptions(TypedDict):
    """Options of a track."""

    count: NotRequired[Union[float, None]]
    """How many: units in limit groups that count; also multiplies the price of a call or image.
    Default 1.
    """
    inputTokens: NotRequired[Union[float, None]]
    """Tokens in limit groups in tokens; also priced in cents by the model's price."""
    inputCostCents: NotRequired[Union[float, None]]
    """Cents in limit groups in cents, instead of the model's price of the input."""
    runId: NotRequired[Union[str, None]]
    """A run of the user: the call is refused where a limit of the run, or of a run around it,
    leaves no room.
    """
    costCents: NotRequired[Union[float, None]]
    """The cost of the event, for reports. Limit groups in cents count it only if the model is
    priced per second.
    """
    usage: NotRequired[Union[ModelUsage, None]]
    """Usage as the model server reported it: final tokens, priced in cents and credits by the
    catalog. Cached tokens and cache writes are parts of inputTokens, reasoningTokens is a
    part of outputTokens. Not together with costCents or with other amounts of tokens, cents
    or credits.
    """
    providerUsage: NotRequired[Union[Metadata, None]]
    """The usage object of OpenAI and servers compatible with it, Anthropic, Gemini
    (usageMetadata), Bedrock or the AI SDK, unchanged, instead of usage. A part larger than
    its whole is added to it, and what a total has above input and output is output.
    """
    prompt: NotRequired[Union[str, None]]
    """Cut after 32768 bytes of UTF-8."""
    response: NotRequired[Union[str, None]]
    """Cut after 32768 bytes of UTF-8."""


class OwnShare(TypedDict):
    """The user's own share of a limit group of a user above."""

    count: float
    """What the user used and holds of the group."""
    quota: Union[float, None]
    """The most that it may use; null for no limit."""


class LevelCounter(Counter):
    """The usage of a limit group of a user above."""

    member: NotRequired[OwnShare]
    """Absent for a guard: it has no shares."""


class TrackAnswerLevels(TypedDict):
    """Members of TrackAnswerLevels."""

    userId: str
    counters: List[LevelCounter]


class TrackAnswer(TypedDict):
    """The answer to a track."""

    eventId: str
    matchStatus: Literal["matched", "matched_credits_only", "unmatched", "no_subscription"]
    matchedGroupIds: List[str]
    counters: List[Counter]
    levels: NotRequired[List[TrackAnswerLevels]]
    """Present if the user has a parent: the users above, nearest first."""
    runs: NotRequired[List[RunState]]
    """With a runId: the run and those around it, innermost first, after the call."""
    cost: Cost
    credits: NotRequired[CreditCost]
    """What the call costs in credits, of a hold at most; present if the catalog has rates."""
    warnings: NotRequired[List[Warning]]
    """"unknown_member: metdata": the call has no such member and was answered without it.
    unpriced_model: a limit group in cents covers the event, but the call has no price.
    unrated_event: credits are counted for the event, but no rate says how many.
    tier_unpriced: the usage names another service tier than the standard one, and was priced
    as the standard one. quantity_not_counted: quantity is above 1, but no matched limit group
    or balance counts it; use count.
    """


class BatchResult1(TypedDict):
    """Members of BatchResult1."""

    ok: Literal[True]
    data: TrackAnswer


class BatchResult2Error(TypedDict):
    """The error of `POST /v1/track` for this event."""

    code: str
    message: str
    details: NotRequired[Any]


class BatchResult2(TypedDict):
    """Members of BatchResult2."""

    ok: Literal[False]
    error: BatchResult2Error
    """The error of `POST /v1/track` for this event."""


BatchResult = Union[BatchResult1, BatchResult2]
"""The result of one event of a batch."""


class CreditOffer(TypedDict):
    """Credits of a pack that could pay."""

    packId: str
    packName: str
    available: float


class UseDetail(TypedDict):
    """A limit group in the answer to a can-use."""

    groupId: str
    current: float
    quota: float
    overage: NotRequired[float]
    """Present where the group has overage: the part of the count that was sold past the quota.
    It uses up none of the quota.
    """
    resetsAt: Union[str, None]
    creditAvailable: float
    creditPacks: List[CreditOffer]


class CanUseAnswerLevels(TypedDict):
    """Members of CanUseAnswerLevels."""

    userId: str
    details: List[UseDetail]


class CanUseAnswer(TypedDict):
    """The answer to a can-use: what a reserve would answer now."""

    allowed: bool
    matched: bool
    reasons: List[ReserveReason]
    details: List[UseDetail]
    refusedBy: NotRequired[List[str]]
    """Of a refused call with a runId, or of a user with a parent: the ids of the users that
    refuse, in the order of the path, then those of runs, innermost first.
    """
    retryAfterMs: NotRequired[Union[float, None]]
    """Present where rates and concurrency limits alone refuse: how long until the same call
    passes them, unless another call or a settlement comes first; null where it never does.
    """
    levels: NotRequired[List[CanUseAnswerLevels]]
    """Present if the user has a parent: the users above, nearest first."""
    runs: NotRequired[List[RunState]]
    """With a runId: the run and those around it, innermost first, after the call."""
    credits: NotRequired[CreditCost]
    """What the call costs in credits, of a hold at most; present if the catalog has rates."""
    warnings: NotRequired[List[Warning]]
    """"unknown_member: metdata": the call has no such member and was answered without it.
    unpriced_model: a limit group in cents covers the event, but the call has no price.
    unrated_event: credits are counted for the event, but no rate says how many.
    tier_unpriced: the usage names another service tier than the standard one, and was priced
    as the standard one. quantity_not_counted: quantity is above 1, but no matched limit group
    or balance counts it; use count.
    """


class ExplainedGroupMetadata(TypedDict):
    """Members of ExplainedGroupMetadata."""

    wanted: str
    given: Union[str, None]


class ExplainedGroupQuotaPartsAddOns(TypedDict):
    """Members of ExplainedGroupQuotaPartsAddOns."""

    subscriptionId: str
    planId: str
    quantity: float
    quota: float
    """What it adds: its quota times its quantity."""


class ExplainedGroupQuotaParts(TypedDict):
    """What the quota is made of; absent for one seat without add-ons."""

    own: float
    """The custom limit, else the plan's quota times quantity."""
    quantity: float
    addOns: List[ExplainedGroupQuotaPartsAddOns]


class ExplainedGroupHeadroom(TypedDict):
    """Members of ExplainedGroupHeadroom."""

    mode: Literal["percent", "multiplier"]
    value: float


class ExplainedGroup(TypedDict):
    """A limit group of the current plan in an explanation."""

    groupId: str
    label: str
    unit: Unit
    covers: bool
    """Whether a rule of the group matches the call."""
    why: Literal["matched", "event", "metadata"]
    """event: no rule matches the event; metadata: a rule matches the event, but requires other
    metadata.
    """
    metadata: NotRequired[Dict[str, ExplainedGroupMetadata]]
    """If why is metadata: the keys with other values than the closest rule requires."""
    quota: float
    isCustom: bool
    """Whether the quota comes from the customLimits of the subscription."""
    quotaParts: NotRequired[ExplainedGroupQuotaParts]
    """What the quota is made of; absent for one seat without add-ons."""
    headroom: Union[ExplainedGroupHeadroom, None]
    """Of the group, else of the plan."""
    gate: float
    """The effective limit of reserves: the quota, less the headroom where it is configured."""
    current: float
    overage: NotRequired[float]
    """Present where the group has overage: the part of the count that was sold past the quota.
    It uses up none of the quota.
    """
    held: float
    """The part of current that open reservations hold."""
    need: Union[float, None]
    """null, like room and fits, if the group does not cover the call."""
    room: Union[float, None]
    """What remains under the effective limit, without credits."""
    fits: Union[bool, None]
    """Whether need fits into room, or with overage is sold past it."""


class ExplainedCredit(TypedDict):
    """A balance in an explanation."""

    balanceId: str
    packId: str
    packName: str
    unit: Unit
    remaining: float
    expiresAt: Union[str, None]
    matches: bool
    """Whether a rule of the balance matches the call."""
    wouldPay: float
    """Amount that a reserve would take now; 0 if the call is refused."""


class ExplainedRateParts(TypedDict):
    """Members of ExplainedRateParts."""

    part: Literal[
        "perCall", "perImage", "perMillionInputTokens", "perMillionCachedInputTokens",
        "perMillionOutputTokens", "perSecond", "perCent"
    ]
    """The member of the rate."""
    amount: float
    """The calls, tokens, seconds or cents."""
    rate: float
    credits: float


class ExplainedRate(TypedDict):
    """What a call costs in credits, and how that adds up."""

    total: float
    rated: bool
    """Whether a rate of the catalog gives the credits."""
    event: Union[str, None]
    """The pattern of the rate; null if none covers the event."""
    minimum: float
    """The least that the call costs; the sum of the parts may be lower."""
    parts: List[ExplainedRateParts]


class ExplanationSubscription(TypedDict):
    """Members of ExplanationSubscription."""

    subscriptionId: str
    planId: str
    planName: str


class ExplanationLevels(TypedDict):
    """Members of ExplanationLevels."""

    userId: str
    groups: List[ExplainedGroup]
    credits: List[ExplainedCredit]


class Explanation(TypedDict):
    """The answer to an explain: what a reserve would answer now, and why."""

    allowed: bool
    matched: bool
    reasons: List[ReserveReason]
    text: str
    """One or two sentences for a support person."""
    subscription: Union[ExplanationSubscription, None]
    """The subscription that grants the plan in force."""
    groups: List[ExplainedGroup]
    """Every limit group of the plan, in its order."""
    credits: List[ExplainedCredit]
    """Every balance with remaining credits, in the order of use."""
    refusedBy: NotRequired[List[str]]
    """Of a refused call with a runId, or of a user with a parent: the ids of the users that
    refuse, in the order of the path, then those of runs, innermost first.
    """
    retryAfterMs: NotRequired[Union[float, None]]
    """Present where rates and concurrency limits alone refuse: how long until the same call
    passes them, unless another call or a settlement comes first; null where it never does.
    """
    levels: NotRequired[List[ExplanationLevels]]
    """Present if the user has a parent: the users above, nearest first."""
    runs: NotRequired[List[RunState]]
    """With a runId: the run and those around it, innermost first, after the call."""
    rate: NotRequired[ExplainedRate]
    """The most that the call costs in credits, and how that adds up; present if the catalog has
    rates.
    """
    warnings: NotRequired[List[Warning]]
    """"unknown_member: metdata": the call has no such member and was answered without it.
    unpriced_model: a limit group in cents covers the event, but the call has no price.
    unrated_event: credits are counted for the event, but no rate says how many.
    tier_unpriced: the usage names another service tier than the standard one, and was priced
    as the standard one. quantity_not_counted: quantity is above 1, but no matched limit group
    or balance counts it; use count.
    """


class UsageLevelsCounters(TypedDict):
    """Members of UsageLevelsCounters."""

    groupId: str
    event: NotRequired[str]
    label: str
    unit: Unit
    quota: float
    count: float
    remaining: float
    overage: NotRequired[float]
    """Present where the group has overage: the part of the count that was sold past the quota.
    It uses up none of the quota.
    """
    overageMax: NotRequired[Union[float, None]]
    """Present where the group has overage: the most in force, of the catalog or the user's own
    cap; null for no limit.
    """
    costCents: NotRequired[float]
    filters: NotRequired[Dict[str, List[str]]]
    period: NotRequired[Union[Period, None]]
    window: NotRequired[CounterWindow]
    """Present for a guard: a rate or a concurrency limit. count is what counts now."""
    member: NotRequired[OwnShare]
    """Absent for a guard: it has no shares."""


class UsageLevels(TypedDict):
    """Members of UsageLevels."""

    userId: NotRequired[str]
    """Only with a secret key."""
    period: NotRequired[Union[Period, None]]
    """Only with a secret key."""
    counters: List[UsageLevelsCounters]


class Usage(TypedDict):
    """The counters and credits of a user."""

    userId: str
    period: Union[Period, None]
    """null without a plan."""
    counters: List[Counter]
    credits: List[CreditBalance]
    features: NotRequired[Dict[str, Feature]]
    """Present if the catalog has features: those in force, by key."""
    levels: NotRequired[List[UsageLevels]]
    """With levels: the users above, nearest first; less with a public key."""
    duplicateActiveSubscriptions: NotRequired[Union[DuplicateActiveSubscriptions, None]]
    """Only with a secret key."""


OverageQuery = TypedDict("OverageQuery", {
    "userId": 'str',
    "from": 'NotRequired[Moment]',
    "to": 'NotRequired[Moment]',
})
"""Which hours of overage to list."""


class OverageHour(TypedDict):
    """What a limit group sold past its quota in an hour."""

    userId: str
    groupId: str
    unit: Unit
    hour: str
    """The beginning of the hour."""
    amount: float
    total: float
    """All of the window, up to and with this hour."""


class OverageList(TypedDict):
    """What limit groups sold to a user past their quotas."""

    overage: List[OverageHour]


class SpendCapInput(TypedDict):
    """A user's own cap to set."""

    userId: NotRequired[Union[str, None]]
    groupId: str
    max: Union[float, None]
    """From 0 to the max of the catalog; null for no cap of the user's own."""


class SpendCap(TypedDict):
    """A user's own cap on overage."""

    userId: str
    groupId: str
    max: Union[float, None]


class UserFeatures(TypedDict):
    """The features of a user."""

    userId: str
    """The canonical id."""
    features: Dict[str, Feature]


UserFeature = TypedDict("UserFeature", {
    "userId": 'str',
    "key": 'str',
    "value": 'Union[FeatureValue, None]',
    "from": 'Literal["custom", "plan", "addon", "default"]',
    "of": 'Union[str, None]',
})
"""One feature of a user."""


class UserKeyInput(TypedDict):
    """A key of a user to create."""

    name: NotRequired[Union[str, None]]
    """For you: where the key is used."""
    expiresAt: NotRequired[Union[Moment, None]]
    """Real time, also in test mode; null: never."""


class CreatedUserKey(TypedDict):
    """A new key of a user."""

    userKeyId: str
    key: str
    """Begins with "uk_live_" or "uk_test_". Only a hash of it is stored."""


class UserKey(TypedDict):
    """A key of a user, without the key itself."""

    userKeyId: str
    name: Union[str, None]
    prefix: str
    """The beginning of the key."""
    createdAt: str
    expiresAt: Union[str, None]
    lastUsedAt: Union[str, None]
    """The first use of the last day (UTC) with any; null before it."""


class SubscriptionInputCustomLimits(TypedDict):
    """Members of SubscriptionInputCustomLimits."""

    quota: float


class SubscriptionInput(TypedDict):
    """A subscription to write."""

    userId: str
    planId: str
    """The id or the name of the plan."""
    provider: NotRequired[Union[str, None]]
    """Your payment provider, such as stripe."""
    externalId: NotRequired[Union[str, None]]
    """The id of the subscription at the provider."""
    customLimits: NotRequired[Union[Mapping[str, SubscriptionInputCustomLimits], None]]
    """Quotas by group id, instead of those of the plan. Left out: unchanged; null: those of the
    plan.
    """
    customFeatures: NotRequired[Union[Mapping[str, Union[bool, float, str, Sequence[
        str]]], None
    ]]
    """Features by key, instead of those of the plan. Left out: unchanged; null: those of the
    plan.
    """
    startsAt: NotRequired[Union[Moment, None]]
    """Not in the future; counts only at creation."""
    endsAt: NotRequired[Union[Moment, None]]
    """In the future. Left out: no end."""
    cycleStart: NotRequired[Union[Moment, None]]
    """The start of the windows. Left out: unchanged; null: the anchor of the plan."""
    quantity: NotRequired[Union[int, None]]
    """Seats: the quotas of the plan are multiplied by it. Left out: unchanged; at first 1."""
    trial: NotRequired[Union[bool, None]]
    """true begins the trial of the plan, false ends it and keeps the plan. Left out: unchanged."""
    at: NotRequired[Union[Moment, None]]
    """When to change to the plan, as a later time or period_end. Left out: now."""


class SubscriptionCustomLimits(TypedDict):
    """Members of SubscriptionCustomLimits."""

    quota: float


class Subscription(TypedDict):
    """A subscription."""

    subscriptionId: str
    userId: str
    planId: str
    startedAt: str
    endsAt: Union[str, None]
    cycleAnchorAt: Union[str, None]
    provider: Union[str, None]
    externalId: Union[str, None]
    customLimits: Union[Dict[str, SubscriptionCustomLimits], None]
    """Quotas that replace those of the plan, by group id; null if there are none."""
    quantity: NotRequired[float]
    """Seats; absent for 1."""
    trialEndsAt: NotRequired[Union[str, None]]
    """null where no trial runs; present if any plan of the app has a trial."""
    scheduled: NotRequired[Union[ScheduledChange, None]]
    """The change of plan that was asked for ahead; absent or null for none."""
    customFeatures: NotRequired[Union[Dict[str, FeatureValue], None]]
    """Present if the catalog has features: those that replace the plan's, by key; null if there
    are none.
    """


class ScheduledChange(TypedDict):
    """A change of plan that was asked for ahead."""

    at: str
    planId: str


class CancelInput(TypedDict):
    """A subscription to end."""

    userId: str
    provider: NotRequired[str]
    """Your payment provider, such as stripe."""
    externalId: NotRequired[str]
    """The id of the subscription at the provider."""
    endsAt: NotRequired[Moment]
    reason: NotRequired[str]
    """Cut after 500 characters."""


class CanceledSubscription(TypedDict):
    """The answer to a cancel."""

    subscriptionId: str
    userId: str
    planId: str
    endsAt: str


class SubscriptionEvent(TypedDict):
    """An entry of a user's subscription history."""

    id: str
    type: Literal[
        "created", "plan_changed", "canceled", "reactivated", "ended", "merged", "promoted"
    ]
    subscriptionId: str
    planId: str
    previousPlanId: Union[str, None]
    reason: Union[str, None]
    at: str


class UserMemberLimits(TypedDict):
    """Members of UserMemberLimits."""

    quota: float


class UserSpendCaps(TypedDict):
    """Members of UserSpendCaps."""

    max: float


class User(TypedDict):
    """Everything about a user."""

    userId: str
    """The canonical id."""
    aliases: List[str]
    subscription: Union[Subscription, None]
    addOns: NotRequired[List[Subscription]]
    """Present if the catalog has add-ons: those in force."""
    history: List[SubscriptionEvent]
    """Newest first, at most 50."""
    period: Union[Period, None]
    """null without a plan."""
    counters: List[Counter]
    credits: List[CreditBalance]
    features: NotRequired[Dict[str, Feature]]
    """Present if the catalog has features: those in force, by key."""
    duplicateActiveSubscriptions: Union[DuplicateActiveSubscriptions, None]
    parentId: NotRequired[Union[str, None]]
    """Present, like path, if the user has a parent or children."""
    path: NotRequired[List[str]]
    """The user, its parent, and so on."""
    memberLimits: NotRequired[Dict[str, UserMemberLimits]]
    """Present if limits are set for the user under its parent."""
    spendCaps: NotRequired[Dict[str, UserSpendCaps]]
    """Present if the user has caps of its own on overage."""


class ParentInputMemberLimits(TypedDict):
    """Members of ParentInputMemberLimits."""

    quota: float


class ParentInput(TypedDict):
    """The parent of a user, and the shares of its pools."""

    parentId: Union[str, None]
    """null: the user has no parent any more."""
    memberLimits: NotRequired[Union[Mapping[str, ParentInputMemberLimits], None]]
    """The most that the user may use of limit groups of the users above, by group id. Left out:
    unchanged under the same parent.
    """


class ParentAnswerMemberLimits(TypedDict):
    """Members of ParentAnswerMemberLimits."""

    quota: float


class ParentAnswer(TypedDict):
    """A user with its path."""

    userId: str
    parentId: Union[str, None]
    path: List[str]
    """The user, its parent, and so on."""
    memberLimits: Union[Dict[str, ParentAnswerMemberLimits], None]


class ChildrenQuery(TypedDict):
    """Which children to list."""

    limit: NotRequired[int]
    """1 to 100, default 20."""
    cursor: NotRequired[str]
    """The cursor of the previous page."""


class Child(TypedDict):
    """A user directly below another one."""

    userId: str
    children: int


class ChildrenPage(TypedDict):
    """A page of children."""

    children: List[Child]
    cursor: Union[str, None]


class MembersQuery(TypedDict):
    """Which members to list."""

    groupId: str
    """A limit group of the user's plan in force."""
    limit: NotRequired[int]
    """1 to 100, default 20."""
    cursor: NotRequired[str]
    """The cursor of the previous page."""


class Member(TypedDict):
    """What a user below used of a limit group."""

    userId: str
    count: float
    """Used and held: whole calls, paid by the plan or by credits."""
    quota: Union[float, None]
    """The most that it may use: of its memberLimits, else the group's perMember; null for no
    limit.
    """
    costCents: float
    """The cost of the counted events."""


class MembersPage(TypedDict):
    """A page of members."""

    members: List[Member]
    cursor: Union[str, None]


class LimitGroupOverage(TypedDict):
    """What it sells past its quota, null for no limit; absent for nothing."""

    max: Union[float, None]


class LimitGroupPerMember(TypedDict):
    """The most that each user below may use of it; absent for no such limit."""

    quota: float


class LimitGroupPeriod(TypedDict):
    """When the group counts; absent for the period of the plan."""

    type: Literal[
        "hourly", "daily", "weekly", "monthly", "yearly", "lifetime", "session", "rolling",
        "concurrent"
    ]
    anchor: NotRequired[Literal["subscription_start", "calendar"]]
    seconds: NotRequired[float]


class LimitGroup(TypedDict):
    """A limit of a plan."""

    id: str
    label: str
    unit: Unit
    quota: float
    event: str
    """The pattern of the first rule."""
    matches: List[MatchRule]
    overage: NotRequired[LimitGroupOverage]
    """What it sells past its quota, null for no limit; absent for nothing."""
    perMember: NotRequired[LimitGroupPerMember]
    """The most that each user below may use of it; absent for no such limit."""
    period: NotRequired[LimitGroupPeriod]
    """When the group counts; absent for the period of the plan."""


class PlanPeriod(TypedDict):
    """Members of PlanPeriod."""

    type: Literal["hourly", "daily", "weekly", "monthly", "yearly", "lifetime"]
    anchor: Literal["subscription_start", "calendar"]


class PlanTrial(TypedDict):
    """Absent for a plan without a trial."""

    days: float


class PlanIncludesPeriod(TypedDict):
    """How often the credits come; absent for the period of the plan."""

    type: Literal["hourly", "daily", "weekly", "monthly", "yearly", "lifetime"]
    anchor: Literal["subscription_start", "calendar"]


class PlanIncludesRollover(TypedDict):
    """How much of what is left at the end of a window goes on, for how many windows more."""

    max: float
    periods: float


class PlanIncludes(TypedDict):
    """Members of PlanIncludes."""

    packId: str
    quantity: NotRequired[float]
    """How many packs, or the amount of a pack without items; absent for one pack."""
    period: NotRequired[PlanIncludesPeriod]
    """How often the credits come; absent for the period of the plan."""
    rollover: NotRequired[PlanIncludesRollover]
    """How much of what is left at the end of a window goes on, for how many windows more."""


class Plan(TypedDict):
    """A plan on offer."""

    id: str
    name: str
    period: PlanPeriod
    addon: NotRequired[bool]
    """true for an add-on, which adds to another plan; else absent."""
    trial: NotRequired[PlanTrial]
    """Absent for a plan without a trial."""
    limits: List[LimitGroup]
    includes: NotRequired[List[PlanIncludes]]
    """Packs whose credits come with the plan in each window; absent for none."""
    features: NotRequired[Dict[str, FeatureValue]]
    """By key; absent for a plan without features."""


class Rate(TypedDict):
    """A row of the rate card: what the calls of an event cost in credits."""

    event: str
    metadata: NotRequired[Dict[str, str]]
    perCall: NotRequired[float]
    perImage: NotRequired[float]
    perMillionInputTokens: NotRequired[float]
    perMillionCachedInputTokens: NotRequired[float]
    perMillionOutputTokens: NotRequired[float]
    perSecond: NotRequired[float]
    perCent: NotRequired[float]
    minimum: NotRequired[float]


class RunLimit(TypedDict):
    """A limit of a run."""

    limitId: str
    unit: Unit
    event: str
    """The pattern of the events that count."""
    quota: float
    count: float
    """Used and held."""
    held: float
    """The part of count that open reservations hold."""


class RunInputLimits(TypedDict):
    """Members of RunInputLimits."""

    unit: Unit
    quota: float
    event: NotRequired[Union[str, None]]
    """The pattern of the events that count. Default: *."""


class RunInput(TypedDict):
    """A run to open."""

    userId: str
    limits: Sequence[RunInputLimits]
    name: NotRequired[Union[str, None]]
    ttlSeconds: NotRequired[Union[float, None]]
    """When the run ends by itself. Default: 3600; with parentRunId not after that run."""
    parentRunId: NotRequired[Union[str, None]]
    """An open run of the same user: calls count there too. Runs nest at most 4 deep."""
    metadata: NotRequired[Union[Metadata, None]]
    """A free-form object of at most 16384 bytes as JSON."""


class Run(TypedDict):
    """A run: a task with limits that its calls share."""

    runId: str
    userId: str
    parentRunId: Union[str, None]
    """The run around it."""
    name: Union[str, None]
    status: Literal["active", "ended"]
    createdAt: str
    expiresAt: str
    endedAt: Union[str, None]
    reason: Union[str, None]
    """The reason of the call that ended it."""
    limits: List[RunLimit]


class RunDetail(Run):
    """A run with its metadata."""

    metadata: Union[Dict[str, Any], None]


class RunQuery(TypedDict):
    """Which runs to list."""

    userId: str
    status: NotRequired[Literal["active", "ended"]]
    limit: NotRequired[int]
    """1 to 100, default 20."""
    cursor: NotRequired[str]
    """The cursor of the previous page."""


class RunPage(TypedDict):
    """A page of runs."""

    runs: List[RunDetail]
    cursor: Union[str, None]


class GrantInput(TypedDict):
    """Credits to grant."""

    userId: str
    packId: str
    """The id or the name of the pack."""
    quantity: NotRequired[Union[float, None]]
    """Required for a pack without items, otherwise ignored."""
    externalRef: NotRequired[Union[str, None]]
    """Your own reference, such as an order id: a second grant with it returns the balances of
    the first.
    """
    expiresAt: NotRequired[Union[Moment, None]]
    """Default: the expiry of the pack; null: never."""
    source: NotRequired[Union[Literal["purchase", "grant", "refund", "manual"], None]]
    """Default purchase."""
    notes: NotRequired[Union[str, None]]


class GrantedBalance(TypedDict):
    """A balance that a grant issued."""

    balanceId: str
    remaining: float
    expiresAt: Union[str, None]
    packItemId: Union[str, None]


class GrantAnswer(TypedDict):
    """balanceId, remaining and expiresAt are those of the first balance."""

    balances: List[GrantedBalance]
    """One for each item of the pack."""
    balanceId: str
    remaining: float
    expiresAt: Union[str, None]


class ExtendInput(TypedDict):
    """A balance with its new expiry."""

    balanceId: str
    expiresAt: Union[Moment, None]
    """Not before the current expiry; null: never."""
    reason: NotRequired[Union[str, None]]


class ExtendAnswer(TypedDict):
    """The answer to an extension."""

    balanceId: str
    remaining: float
    expiresAt: Union[str, None]


class RevokeInput(TypedDict):
    """A balance to revoke."""

    balanceId: str
    reason: NotRequired[Union[str, None]]


class RevokeAnswer(TypedDict):
    """The answer to a revoke."""

    balanceId: str
    remaining: Literal[0]


class CreditQuery(TypedDict):
    """Which balances to list."""

    userId: str
    event: NotRequired[str]
    """An event type or pattern: selects balances that cover it."""
    includeExpired: NotRequired[bool]
    """Whether to list expired and revoked balances too."""


class CreditList(TypedDict):
    """A user's balances."""

    credits: List[CreditBalance]
    """In the order of use."""


class LedgerQuery(TypedDict):
    """Which ledger entries to list."""

    userId: str
    limit: NotRequired[int]
    """1 to 500, default 50."""
    cursor: NotRequired[str]
    """nextCursor of the previous page."""
    balanceId: NotRequired[str]


class LedgerEntry(TypedDict):
    """A movement of credits."""

    id: str
    balanceId: str
    packId: str
    delta: float
    """Negative: consumed; positive: granted or refunded."""
    reason: Literal[
        "event_committed", "reservation_held", "reservation_released", "reservation_expired",
        "grant", "admin_adjust", "merged_from_alias", "merge_dedupe"
    ]
    eventId: Union[str, None]
    reservationId: Union[str, None]
    occurredAt: str
    notes: Union[str, None]


class LedgerPage(TypedDict):
    """A page of the ledger."""

    entries: List[LedgerEntry]
    """Newest first."""
    nextCursor: Union[str, None]
    """null on the last page."""


class TopUpInput(TypedDict):
    """What a user buys automatically, and when."""

    packId: str
    """The id or the name of a pack with a price, and one item or none."""
    below: float
    """Buys when less than this is left of active balances with the pack's unit and rules."""
    quantity: NotRequired[Union[int, None]]
    """Packs, default 1; units of a pack without items, where it is required."""
    maxPerMonth: int
    """The most that may be paid in a UTC month, in the smallest unit of the currency."""
    stripeCustomerId: NotRequired[Union[str, None]]
    """Required the first time. Only your backend may set it."""
    stripePaymentMethodId: NotRequired[Union[str, None]]
    """A saved card of the customer. Required the first time. Only your backend may set it."""
    enabled: NotRequired[Union[bool, None]]
    """Default true."""


class TopUpSetting(TypedDict):
    """The top-up setting of a user."""

    userId: str
    packId: str
    below: float
    quantity: float
    maxPerMonth: float
    """In the smallest unit of the currency."""
    enabled: bool
    """false also after three failures in a row, and after a change of the currency: your
    backend's next PUT enables it.
    """
    stripeCustomerId: NotRequired[str]
    """Left out in answers to a user."""
    stripePaymentMethodId: NotRequired[str]
    """Left out in answers to a user."""
    openIntentId: Union[str, None]
    """The top-up that is under way."""
    nextTryAt: Union[str, None]
    """No top-up is made before."""
    failures: float
    """Failed top-ups since the last paid one."""


class DeletedTopUp(TypedDict):
    """A removed top-up setting."""

    userId: str
    underWay: bool
    """Whether a top-up is still being called off or paid."""


class TopUpQuery(TypedDict):
    """Which top-ups to list."""

    limit: NotRequired[int]
    """1 to 100, default 20."""
    cursor: NotRequired[str]
    """The cursor of the previous page."""


class TopUp(TypedDict):
    """A purchase of credits that a setting made."""

    topUpId: str
    status: Literal["open", "processing", "paid", "failed", "canceled"]
    packId: str
    quantity: float
    amount: float
    """In the smallest unit of the currency."""
    currency: str
    paymentIntentId: Union[str, None]
    """Of Stripe."""
    reason: Union[str, None]
    """Why it failed: a text for the customer."""
    createdAt: str
    settledAt: Union[str, None]


class TopUpPage(TypedDict):
    """A page of top-ups."""

    topUps: List[TopUp]
    cursor: Union[str, None]


AliasPair = TypedDict("AliasPair", {
    "from": 'str',
    "to": 'str',
})
"""Two ids of one user."""


class AliasInput(AliasPair):
    """Two ids to merge."""

    consentGiven: NotRequired[Union[bool, None]]
    """Whether the person agreed to link analytics; required for ids that start with anon_."""
    dryRun: NotRequired[Union[bool, None]]
    """Whether to only report the result, and merge nothing."""


class AliasReportMoved(TypedDict):
    """Rows that now belong to the remaining user."""

    events: int
    eventLogs: int
    counters: int
    reservations: int
    subscriptions: int
    subscriptionEvents: int
    creditBalances: int
    creditLedger: int
    mediaAssets: int
    composeGenerations: int
    aliasesRepointed: int
    movedChildren: NotRequired[int]
    """If one of the users has a parent or children: users directly below from, now below to."""


class AliasReportConflictsCountersCarried(TypedDict):
    """Members of AliasReportConflictsCountersCarried."""

    fromGroupId: str
    toGroupId: str


class AliasReportConflictsCounters(TypedDict):
    """Members of AliasReportConflictsCounters."""

    summed: int
    carried: List[AliasReportConflictsCountersCarried]
    """Groups with their usage moved to a group of the remaining plan."""
    unpaired: List[str]
    """Groups without a match in that plan: kept as history, not counted."""


class AliasReportConflictsCredits(TypedDict):
    """Members of AliasReportConflictsCredits."""

    externalRef: str
    survivorId: str
    droppedId: str
    remaining: float
    overage: float


class AliasReportConflicts(TypedDict):
    """Members of AliasReportConflicts."""

    counters: AliasReportConflictsCounters
    subscriptions: Union[DuplicateActiveSubscriptions, None]
    endedSubscriptions: List[SubscriptionRef]
    """Subscriptions without provider that ended, because of a paid one or of a better one
    without provider.
    """
    credits: List[AliasReportConflictsCredits]
    """Grants that both ids had, by their externalRef."""


AliasReport = TypedDict("AliasReport", {
    "mergeId": 'Union[str, None]',
    "from": 'str',
    "to": 'str',
    "mode": 'Mode',
    "dryRun": 'bool',
    "alreadyMerged": 'bool',
    "historyPending": 'bool',
    "billableOperations": 'int',
    "moved": 'AliasReportMoved',
    "conflicts": 'AliasReportConflicts',
    "analytics": 'Literal["linked", "already_linked", "skipped_consent_required"]',
})
"""The report of a merge."""


AliasErrorCode = Literal[
        "invalid_request", "idempotency_conflict", "alias_conflict", "alias_cycle",
        "path_too_long", "workspace_limit_reached", "test_quota_exceeded", "unavailable",
        "internal_error", "not_processed"
    ]
"""Why a pair of many was not merged."""


AliasResult1 = TypedDict("AliasResult1", {
    "from": 'Any',
    "to": 'Any',
    "ok": 'Literal[True]',
    "report": 'AliasReport',
    "billableOperations": 'int',
})


class AliasResult2Error(TypedDict):
    """Members of AliasResult2Error."""

    code: AliasErrorCode
    message: str


AliasResult2 = TypedDict("AliasResult2", {
    "from": 'Any',
    "to": 'Any',
    "ok": 'Literal[False]',
    "error": 'AliasResult2Error',
    "billableOperations": 'Literal[0]',
})


AliasResult = Union[AliasResult1, AliasResult2]
"""The result of one pair of many."""


class AliasManyAnswer(TypedDict):
    """The results of many pairs."""

    results: List[AliasResult]
    """In the order of the pairs."""
    billableOperations: int


class Customer(TypedDict):
    """The user behind an id."""

    canonicalId: str
    aliases: List[str]
    duplicateActiveSubscriptions: Union[DuplicateActiveSubscriptions, None]


class ComposeUsage(TypedDict):
    """What a generation cost."""

    model: str
    inputTokens: float
    outputTokens: float
    costCents: float
    eventId: str


class Generated(TypedDict):
    """A generation."""

    status: Literal["generated"]
    generationId: str
    output: Dict[str, Any]
    """Matches the output schema of the type."""
    usage: ComposeUsage
    runs: NotRequired[List[RunState]]
    """With a runId: the run and those around it, innermost first, after the call."""


class OptedOut(TypedDict):
    """No generation: the user opted out of AI personalization."""

    status: Literal["opted_out"]
    generationId: Any
    output: Any
    usage: Any
    runs: NotRequired[List[RunState]]
    """With a runId: the run and those around it, innermost first, after the call."""


Properties = Mapping[str, Union[Union[str, float, bool], None]]
"""Properties by name, up to 16 KiB as JSON."""


class CaptureInput(TypedDict):
    """Something that a person did."""

    distinctId: NotRequired[Union[str, None]]
    """Left out: an anonymous event, linked to no person."""
    event: str
    properties: NotRequired[Union[Properties, None]]
    """A free-form object of at most 16384 bytes as JSON."""
    timestamp: NotRequired[Union[Moment, None]]
    """Default: now. At most 24 hours in the future."""


class CaptureAnswer(TypedDict):
    """The answer to a capture. People who opted out get the same."""

    accepted: Literal[True]


class IdentifyInput(TypedDict):
    """What you know about the person behind an id."""

    distinctId: str
    properties: NotRequired[Union[Properties, None]]
    """Overwrite properties of the same name."""
    propertiesOnce: NotRequired[Union[Properties, None]]
    """Set only properties that the person does not have yet."""
    mergeAnonymousId: NotRequired[Union[str, None]]
    """The id of an anonymous session of this person."""
    consentGiven: NotRequired[Union[bool, None]]
    """Whether the person agreed to the merge; required with mergeAnonymousId."""


class IdentifyAnswer(TypedDict):
    """The answer to an identify."""

    personId: str
    merged: bool


class PersonAliasInput(TypedDict):
    """Two ids of one person."""

    distinctId: str
    alias: str
    consentGiven: NotRequired[Union[bool, None]]
    """Whether the person agreed; required for ids that start with anon_."""


class PersonAliasAnswer(TypedDict):
    """The answer to an alias of two people."""

    personId: str


ConsentScope = Literal["analytics", "ai_personalization", "prompt_logging"]
"""What a person can opt out of."""


class PersonExportLink(TypedDict):
    """A link to the export of a person."""

    downloadUrl: str
    expiresAt: str
    """24 hours from now."""
    format: Literal["json"]


class PersonExportPerson(TypedDict):
    """Members of PersonExportPerson."""

    personId: str
    distinctIds: List[str]
    properties: Properties
    identifiedAt: Union[str, None]
    createdAt: str


class PersonExportEventsAnalytics(TypedDict):
    """Members of PersonExportEventsAnalytics."""

    id: str
    event: str
    properties: Properties
    timestamp: str


class PersonExportEvents(TypedDict):
    """Members of PersonExportEvents."""

    analytics: List[PersonExportEventsAnalytics]
    metering: List[MeteredEvent]


class PersonExportConsentLog(TypedDict):
    """Members of PersonExportConsentLog."""

    id: str
    action: Literal["opt_out", "opt_in"]
    scope: Literal["analytics", "ai_personalization", "all", "prompt_logging"]
    consentGiven: bool
    createdAt: str


class PersonExportRuns(TypedDict):
    """Members of PersonExportRuns."""

    runId: str
    parentRunId: Union[str, None]
    name: Union[str, None]
    metadata: Union[Dict[str, Any], None]
    createdAt: str
    expiresAt: str
    endedAt: Union[str, None]
    reason: Union[str, None]
    limits: List[RunLimit]


class PersonExportKeys(TypedDict):
    """Members of PersonExportKeys."""

    id: str
    name: Union[str, None]
    createdAt: str
    expiresAt: Union[str, None]
    lastUsedAt: Union[str, None]


class PersonExportShares(TypedDict):
    """Members of PersonExportShares."""

    groupId: str
    unit: Unit
    period: Period
    count: float
    costCents: float


class PersonExportTopUps(TypedDict):
    """Members of PersonExportTopUps."""

    topUpId: str
    status: Literal["open", "processing", "paid", "failed", "canceled"]
    packId: str
    quantity: float
    units: float
    amount: float
    currency: str
    reason: Union[str, None]
    stripeCustomerId: str
    paymentIntentId: Union[str, None]
    createdAt: str
    settledAt: Union[str, None]


class PersonExportOverage(TypedDict):
    """Members of PersonExportOverage."""

    groupId: str
    unit: Unit
    hour: str
    amount: float
    total: float


class PersonExportSpendCaps(TypedDict):
    """Members of PersonExportSpendCaps."""

    groupId: str
    max: float


class PersonExport(TypedDict):
    """Everything known about a person."""

    format: Literal["json"]
    exportedAt: str
    appId: str
    mode: Mode
    distinctId: str
    person: Union[PersonExportPerson, None]
    events: PersonExportEvents
    consentLog: List[PersonExportConsentLog]
    runs: NotRequired[List[PersonExportRuns]]
    """Absent for a person without runs."""
    keys: List[PersonExportKeys]
    """Keys of the user that are not revoked."""
    shares: NotRequired[List[PersonExportShares]]
    """What the person used of limit groups of users above; absent for nothing."""
    topUps: NotRequired[List[PersonExportTopUps]]
    """Absent for a person without top-ups."""
    overage: NotRequired[List[PersonExportOverage]]
    """What was sold to the person past quotas, by hour; absent for nothing."""
    spendCaps: NotRequired[List[PersonExportSpendCaps]]
    """The person's own caps on that; absent for none."""


class DeletionStatus(TypedDict):
    """The state of an erasure."""

    status: Literal["queued", "in_progress", "completed", "failed"]
    requestedAt: str
    startedAt: Union[str, None]
    completedAt: Union[str, None]
    errorMessage: Union[str, None]


EventQuery = TypedDict("EventQuery", {
    "userId": 'NotRequired[str]',
    "eventType": 'NotRequired[str]',
    "status": 'NotRequired[Literal["matched_credits_only", "unmatched", "blocked", "no_subscription", "released"]]',
    "runId": 'NotRequired[str]',
    "from": 'NotRequired[Moment]',
    "to": 'NotRequired[Moment]',
    "limit": 'NotRequired[int]',
    "offset": 'NotRequired[int]',
})
"""Which events to list."""


class MeteredEvent(TypedDict):
    """An event in a list."""

    id: str
    endUserId: str
    eventType: str
    quantity: float
    costCents: float
    costCredits: NotRequired[float]
    """Absent for an event without a rate."""
    matchStatus: Literal[
        "matched", "matched_credits_only", "unmatched", "blocked", "no_subscription", "released"
    ]
    createdAt: str
    hasLog: bool
    promptPreview: Union[str, None]
    """The first 200 characters of the prompt."""
    runId: NotRequired[str]
    """The run of the call; absent for none."""


class EventPage(TypedDict):
    """A page of events."""

    events: List[MeteredEvent]
    """Newest first."""
    limit: int
    offset: int
    logPromptsEnabled: bool
    """Whether prompts are logged now; if not, no event shows a log."""


class ChargedAmount1(TypedDict):
    """Members of ChargedAmount1."""

    groupId: str
    unit: Unit
    amount: float
    userId: NotRequired[str]
    """The user above that was charged; absent for the event's own."""


class ChargedAmount2(TypedDict):
    """Members of ChargedAmount2."""

    balanceId: str
    unit: Unit
    amount: float
    userId: NotRequired[str]
    """The user above that was charged; absent for the event's own."""


ChargedAmount = Union[ChargedAmount1, ChargedAmount2]
"""What an event took from one limit group or one credit balance."""


class EventDetail(MeteredEvent):
    """An event with its details."""

    metadata: Union[Dict[str, Any], None]
    matchedGroupIds: List[str]
    amounts: List[ChargedAmount]
    """Charged amounts: of limit groups, and of the credit balances that paid."""
    prompt: Union[str, None]
    response: Union[str, None]
    errorCode: Union[str, None]
    reservationId: Union[str, None]
    reason: Union[str, None]
    uncovered: Uncovered
    """By unit, the amount that neither plan nor credits could cover; usually empty."""


class RefusalQuery(TypedDict):
    """Which refused calls to list."""

    userId: NotRequired[str]
    event: NotRequired[str]
    refusedBy: NotRequired[str]
    """Only calls that this user refused, above their own user."""
    limit: NotRequired[int]
    """1 to 100, default 20."""
    offset: NotRequired[int]
    """0 to 10000, default 0."""


class Refusal(TypedDict):
    """Refused calls of a user with the same event and reasons, within one hour (UTC)."""

    userId: str
    event: str
    reasons: List[Literal["limit_reached", "reservation_headroom_exceeded", "unmatched_event", "no_subscription", "unpriced_model", "member_limit_reached", "run_limit_reached", "rate_limit_reached", "concurrency_limit_reached", "workspace_limit_reached", "test_quota_exceeded", "ai_budget_exceeded"]]
    groupIds: List[str]
    """Limit groups without room for the newest call, in the plan's order."""
    refusedBy: NotRequired[List[str]]
    """Of a user with a parent: the ids of the users that refused."""
    count: int
    firstAt: str
    lastAt: str


class RefusalPage(TypedDict):
    """A page of refused calls."""

    refusals: List[Refusal]
    """Newest first by lastAt."""
    limit: int
    offset: int


class TestClockAnswer(TypedDict):
    """The time of test mode."""

    now: str


class ThresholdMessageData(TypedDict):
    """The data of a message about a threshold."""

    appId: str
    mode: Mode
    userId: str
    groupId: str
    label: str
    unit: Unit
    thresholdPercent: float
    quota: float
    """The quota in force."""
    current: float
    """Used and held."""
    period: Period
    causedBy: NotRequired[str]
    """Present if a call of a user below userId caused the message: the id of that user."""


class PaceMessageData(TypedDict):
    """The data of a message about a pace."""

    appId: str
    mode: Mode
    userId: str
    groupId: str
    label: str
    unit: Unit
    projectedAt: str
    """When the quota is used up, if usage goes on as since the start of the period."""
    quota: float
    """The quota in force."""
    current: float
    """Used and held."""
    period: Period
    causedBy: NotRequired[str]
    """Present if a call of a user below userId caused the message: the id of that user."""


class CreditsMessageData(TypedDict):
    """The data of a message about a credit balance."""

    appId: str
    mode: Mode
    userId: str
    balanceId: str
    packId: str
    packItemId: Union[str, None]
    """null for a pack without items."""
    remaining: float
    externalRef: Union[str, None]
    causedBy: NotRequired[str]
    """Present if a call of a user below userId caused the message: the id of that user."""


class OverageMessageData(TypedDict):
    """The data of a message about overage that begins, or reaches its cap."""

    appId: str
    mode: Mode
    userId: str
    groupId: str
    unit: Unit
    period: Period
    """The window of the group."""
    max: Union[float, None]
    """The most in force; null for no limit."""
    overage: float
    """Sold so far, open holds included."""
    causedBy: NotRequired[str]
    """Present if a call of a user below userId caused the message: the id of that user."""


class TopUpMessageData(TypedDict):
    """The data of a message about an automatic top-up."""

    appId: str
    mode: Mode
    userId: str
    topUpId: Union[str, None]
    """null where the cap let none be made."""
    packId: str
    quantity: float
    amount: float
    """In the smallest unit of the currency."""
    currency: str
    reason: Union[str, None]
    """Of topup.failed: a text for the customer. Of topup.capped: max_per_month or
    currency_changed.
    """
    causedBy: NotRequired[str]
    """Present if a call of a user below userId caused the message: the id of that user."""


class SubscriptionMessageData(TypedDict):
    """The data of a message about a subscription."""

    appId: str
    mode: Mode
    userId: str
    subscriptionId: str
    planId: str
    previousPlanId: Union[str, None]
    reason: Union[str, None]
    features: NotRequired[Dict[str, Feature]]
    """Of a change of plan, if the catalog has features: those in force after it, by key."""


class UsageOverage(TypedDict):
    """Members of UsageOverage."""

    appId: str
    mode: Mode
    userId: str
    groupId: str
    unit: Unit
    period: Period
    """The window of the group."""
    hour: str
    """The beginning of the UTC hour of settling, by the app's clock."""
    amount: float
    """Settled in the hour and not reported before."""
    total: float
    """All settled overage of the window, up to and with this message."""


UserMerged = TypedDict("UserMerged", {
    "appId": 'str',
    "mode": 'Mode',
    "from": 'str',
    "to": 'str',
    "mergeId": 'str',
})


class ReservationExpired(TypedDict):
    """Members of ReservationExpired."""

    appId: str
    mode: Mode
    userId: str
    reservationId: str
    event: str


class PersonErased(TypedDict):
    """Members of PersonErased."""

    appId: str
    mode: Mode
    jobId: str
    """Id of the deletion job; not an id of the person."""


class Ping(TypedDict):
    """Members of Ping."""

    appId: str
    mode: Mode


WebhookData = TypedDict("WebhookData", {
    "usage.threshold_reached": 'ThresholdMessageData',
    "usage.pace_exceeded": 'PaceMessageData',
    "usage.overage": 'UsageOverage',
    "usage.overage_started": 'OverageMessageData',
    "usage.cap_reached": 'OverageMessageData',
    "credits.granted": 'CreditsMessageData',
    "credits.low": 'CreditsMessageData',
    "credits.depleted": 'CreditsMessageData',
    "credits.expired": 'CreditsMessageData',
    "credits.revoked": 'CreditsMessageData',
    "subscription.created": 'SubscriptionMessageData',
    "subscription.plan_changed": 'SubscriptionMessageData',
    "subscription.canceled": 'SubscriptionMessageData',
    "subscription.reactivated": 'SubscriptionMessageData',
    "subscription.ended": 'SubscriptionMessageData',
    "subscription.merged": 'SubscriptionMessageData',
    "subscription.promoted": 'SubscriptionMessageData',
    "user.merged": 'UserMerged',
    "reservation.expired": 'ReservationExpired',
    "topup.paid": 'TopUpMessageData',
    "topup.failed": 'TopUpMessageData',
    "topup.capped": 'TopUpMessageData',
    "person.erased": 'PersonErased',
    "ping": 'Ping',
})
"""The data of each type of webhook message."""
