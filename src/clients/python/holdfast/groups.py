"""The calls beside metering, in groups: ``client.subscriptions.upsert(...)`` and so on.

Arguments are the members of the API in snake_case; answers have the names of the API. None leaves an argument out. Where null
means more than that, the default is ``OMIT`` and None is sent.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union, cast

from .errors import invalid_input
from .types import (
    AliasManyAnswer,
    AliasPair,
    AliasReport,
    AliasResult,
    CanceledSubscription,
    CaptureAnswer,
    Child,
    ChildrenPage,
    ConsentScope,
    CreatedUserKey,
    CreditList,
    Customer,
    DeletedTopUp,
    DeletionStatus,
    EventDetail,
    EventPage,
    ExtendAnswer,
    FeatureValue,
    GrantAnswer,
    IdentifyAnswer,
    LedgerEntry,
    LedgerPage,
    Member,
    MembersPage,
    Metadata,
    MeteredEvent,
    Moment,
    ParentAnswer,
    PersonAliasAnswer,
    PersonExport,
    PersonExportLink,
    Plan,
    Rate,
    Properties,
    RefusalPage,
    RevokeAnswer,
    Run,
    RunDetail,
    RunInputLimits,
    RunPage,
    Subscription,
    SubscriptionInputCustomLimits,
    TestClockAnswer,
    TopUpPage,
    TopUpSetting,
    User,
    UserFeatures,
    UserKey,
)
from .wire import OMIT, Call, Omitted, nullable, path_member

Send = Callable[[Call], Any]
MANY_TIMEOUT = 90.0
PAIRS_MAX = 500
EVENTS_PAGE = 100
EVENTS_OFFSET_MAX = 10_000


class Group:
    def __init__(self, send: Send) -> None:
        self._send = send


class Accounts(Group):
    """Puts users under organisations and teams, and reads who is below them."""

    def set_parent(
        self,
        user_id: str,
        parent_id: Optional[str],
        *,
        member_limits: Union[Mapping[str, Mapping[str, float]], None, Omitted] = OMIT,
    ) -> ParentAnswer:
        """Puts a user under another one; None takes it out.

        :param member_limits: shares of the pools above by group id, as ``{"quota": ...}``; None: those of the plan
        """
        body = {"parentId": nullable(parent_id), "memberLimits": nullable(member_limits)}
        path = f"/users/{path_member('user_id', user_id)}/parent"
        return cast(ParentAnswer, self._send(Call("PUT", path, body)))

    def children(self, user_id: str, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> ChildrenPage:
        """Lists the users directly below a user."""
        path = f"/users/{path_member('user_id', user_id)}/children"
        return cast(ChildrenPage, self._send(Call("GET", path, query={"limit": limit, "cursor": cursor})))

    def children_all(self, user_id: str) -> Iterator[Child]:
        """All users directly below a user, page by page."""
        return _all(lambda cursor: self.children(user_id, limit=100, cursor=cursor), "children", "cursor")

    def members(
        self, user_id: str, group_id: str, *, limit: Optional[int] = None, cursor: Optional[str] = None
    ) -> MembersPage:
        """Lists what users below used of a limit group."""
        path = f"/users/{path_member('user_id', user_id)}/members"
        query = {"groupId": group_id, "limit": limit, "cursor": cursor}
        return cast(MembersPage, self._send(Call("GET", path, query=query)))

    def members_all(self, user_id: str, group_id: str) -> Iterator[Member]:
        """What all users below used of a limit group, page by page."""
        return _all(lambda cursor: self.members(user_id, group_id, limit=100, cursor=cursor), "members", "cursor")


class Analytics(Group):
    """Analytics of people: events, properties, consent, export and erasure."""

    def capture(
        self,
        event: str,
        *,
        distinct_id: Optional[str] = None,
        properties: Optional[Properties] = None,
        timestamp: Optional[Moment] = None,
    ) -> CaptureAnswer:
        """Records something that a person did."""
        body = {"distinctId": distinct_id, "event": event, "properties": properties, "timestamp": timestamp}
        return cast(CaptureAnswer, self._send(Call("POST", "/capture", body)))

    def identify(
        self,
        distinct_id: str,
        *,
        properties: Optional[Properties] = None,
        properties_once: Optional[Properties] = None,
        merge_anonymous_id: Optional[str] = None,
        consent_given: Optional[bool] = None,
    ) -> IdentifyAnswer:
        """Tells what you know about the person behind an id."""
        body = {
            "distinctId": distinct_id,
            "properties": properties,
            "propertiesOnce": properties_once,
            "mergeAnonymousId": merge_anonymous_id,
            "consentGiven": consent_given,
        }
        return cast(IdentifyAnswer, self._send(Call("POST", "/identify", body)))

    def alias(self, distinct_id: str, alias: str, *, consent_given: Optional[bool] = None) -> PersonAliasAnswer:
        """Makes one person of two ids."""
        body = {"distinctId": distinct_id, "alias": alias, "consentGiven": consent_given}
        return cast(PersonAliasAnswer, self._send(Call("POST", "/alias", body)))

    def opt_out(self, distinct_id: str, scope: Optional[str] = None) -> None:
        """Opts a person out of a scope, or of all."""
        self._send(Call("POST", "/opt-out", {"distinctId": distinct_id, "scope": scope}))

    def opt_in(self, distinct_id: str, scope: Optional[str] = None) -> None:
        """Opts a person in again."""
        self._send(Call("POST", "/opt-in", {"distinctId": distinct_id, "scope": scope}))

    def is_opted_out(self, distinct_id: str, scope: Optional[ConsentScope] = None) -> bool:
        """Whether a person opted out of a scope."""
        query = {"distinctId": distinct_id, "scope": scope}
        return bool(self._send(Call("GET", "/opted-out", query=query))["optedOut"])

    def export_person(self, distinct_id: str) -> PersonExportLink:
        """Returns a link to everything known about a person, valid for 24 hours."""
        return cast(PersonExportLink, self._send(Call("POST", "/export-person", {"distinctId": distinct_id})))

    def download_export(self, token: str) -> PersonExport:
        """Downloads an export.

        :param token: the parameter of that name in the link of ``export_person``, or the whole link
        """
        query = {"token": token.rsplit("token=", 1)[-1]}
        return cast(PersonExport, self._send(Call("GET", "/export-download", query=query, has_envelope=False)))

    def delete_person(self, distinct_id: str) -> str:
        """Erases a person with all that belongs to it; returns the id of the job."""
        return str(self._send(Call("POST", "/delete-person", {"distinctId": distinct_id}))["jobId"])

    def deletion_status(self, job_id: str) -> DeletionStatus:
        """Returns how far an erasure is."""
        return cast(DeletionStatus, self._send(Call("GET", "/deletion-status", query={"jobId": job_id})))


class Credits(Group):
    """Credit packs: granting, extending and revoking, a user's balances, and the ledger."""

    def grant(
        self,
        user_id: str,
        pack_id: str,
        *,
        quantity: Optional[float] = None,
        external_ref: Optional[str] = None,
        expires_at: Union[Moment, None, Omitted] = OMIT,
        source: Optional[str] = None,
        notes: Optional[str] = None,
    ) -> GrantAnswer:
        """Grants a pack.

        :param external_ref: your own reference: a second grant with it returns the balances of the first
        :param expires_at: None: never; left out: as the pack says
        """
        body = {
            "userId": user_id,
            "packId": pack_id,
            "quantity": quantity,
            "externalRef": external_ref,
            "expiresAt": nullable(expires_at),
            "source": source,
            "notes": notes,
        }
        return cast(GrantAnswer, self._send(Call("POST", "/credits/grant", body)))

    def extend(self, balance_id: str, expires_at: Optional[Moment], *, reason: Optional[str] = None) -> ExtendAnswer:
        """Lets a balance expire later; None: never."""
        body = {"balanceId": balance_id, "expiresAt": nullable(expires_at), "reason": reason}
        return cast(ExtendAnswer, self._send(Call("POST", "/credits/extend", body)))

    def revoke(self, balance_id: str, *, reason: Optional[str] = None) -> RevokeAnswer:
        """Takes back what is left of a balance."""
        body = {"balanceId": balance_id, "reason": reason}
        return cast(RevokeAnswer, self._send(Call("POST", "/credits/revoke", body)))

    def list(
        self, user_id: str, *, event: Optional[str] = None, include_expired: Optional[bool] = None
    ) -> CreditList:
        """Lists a user's balances in the order of use."""
        query = {"userId": user_id, "event": event, "includeExpired": include_expired}
        return cast(CreditList, self._send(Call("GET", "/credits", query=query)))

    def history(
        self,
        user_id: str,
        *,
        balance_id: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> LedgerPage:
        """Lists movements of credits, newest first."""
        query = {"userId": user_id, "balanceId": balance_id, "limit": limit, "cursor": cursor}
        return cast(LedgerPage, self._send(Call("GET", "/credits/history", query=query)))

    def history_all(self, user_id: str, *, balance_id: Optional[str] = None) -> Iterator[LedgerEntry]:
        """All movements of credits, newest first, page by page."""

        def read(cursor: Optional[str]) -> LedgerPage:
            return self.history(user_id, balance_id=balance_id, limit=500, cursor=cursor)

        return _all(read, "entries", "nextCursor")


class Customers(Group):
    """Makes one user of several ids, and finds the user behind an id."""

    def alias(
        self, from_id: str, to_id: str, *, dry_run: Optional[bool] = None, consent_given: Optional[bool] = None
    ) -> AliasReport:
        """Merges the user behind ``from_id`` into the one behind ``to_id``."""
        body = {"from": from_id, "to": to_id, "dryRun": dry_run, "consentGiven": consent_given}
        return cast(AliasReport, self._send(Call("POST", "/customers/alias", body, is_read=dry_run is True)))

    def alias_many(
        self,
        pairs: Sequence[AliasPair],
        *,
        dry_run: Optional[bool] = None,
        consent_given: Optional[bool] = None,
        chunk_size: int = PAIRS_MAX,
    ) -> AliasManyAnswer:
        """Merges any number of pairs, in requests of ``chunk_size``; returns the result of each."""
        if not 1 <= chunk_size <= PAIRS_MAX:
            raise invalid_input(f"chunk_size: must be a whole number from 1 to {PAIRS_MAX}")
        results: Dict[int, AliasResult] = {}
        left = list(range(len(pairs)))
        operations = 0
        while left:
            chunk, later = left[:chunk_size], left[chunk_size:]
            body = {
                "pairs": [pairs[place] for place in chunk],
                "dryRun": dry_run,
                "consentGiven": consent_given,
            }
            call = Call(
                "POST", "/customers/alias/batch", body, is_read=dry_run is True, timeout_min=MANY_TIMEOUT
            )
            answer = cast(AliasManyAnswer, self._send(call))
            results.update(zip(chunk, answer["results"]))
            undone = [place for place in chunk if _is_not_processed(results[place])]
            operations += sum(
                result["billableOperations"] for result in answer["results"] if not _is_not_processed(result)
            )
            # Without progress the same request would be sent forever.
            left = (undone if len(undone) < len(chunk) else []) + later
        return {"results": [results[place] for place in range(len(pairs))], "billableOperations": operations}

    def get(self, id: str) -> Customer:
        """Finds the user behind an id."""
        return cast(Customer, self._send(Call("GET", f"/customers/{path_member('id', id)}")))


class Events(Group):
    """Reads metered events."""

    def list(
        self,
        *,
        user_id: Optional[str] = None,
        event_type: Optional[str] = None,
        status: Optional[str] = None,
        run_id: Optional[str] = None,
        from_time: Optional[Moment] = None,
        to_time: Optional[Moment] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> EventPage:
        """Lists events, newest first.

        :param status: only events of it, such as ``"blocked"``; not ``"matched"``
        :param from_time: only events at and after it
        :param to_time: only events before it
        """
        query = {
            "userId": user_id,
            "eventType": event_type,
            "status": status,
            "runId": run_id,
            "from": from_time,
            "to": to_time,
            "limit": limit,
            "offset": offset,
        }
        return cast(EventPage, self._send(Call("GET", "/events", query=query)))

    def all(
        self,
        *,
        user_id: Optional[str] = None,
        event_type: Optional[str] = None,
        status: Optional[str] = None,
        run_id: Optional[str] = None,
    ) -> Iterator[MeteredEvent]:
        """All events, newest first, page by page, each once."""
        seen = set()
        for offset in range(0, EVENTS_OFFSET_MAX + 1, EVENTS_PAGE):
            page = self.list(
                user_id=user_id,
                event_type=event_type,
                status=status,
                run_id=run_id,
                limit=EVENTS_PAGE,
                offset=offset,
            )
            for event in page["events"]:
                if event["id"] not in seen:
                    seen.add(event["id"])
                    yield event
            if len(page["events"]) < EVENTS_PAGE:
                return
        raise invalid_input(f"The list has more than {len(seen)} rows: narrow it by user_id or event_type")

    def get(self, event_id: str) -> EventDetail:
        """Reads an event with its details."""
        return cast(EventDetail, self._send(Call("GET", f"/events/{path_member('event_id', event_id)}")))


class Features(Group):
    """Reads what a user may use at all."""

    def get(self, user_id: Optional[str] = None) -> UserFeatures:
        """Reads all features of a user."""
        return cast(UserFeatures, self._send(Call("GET", "/features", query={"userId": user_id})))

    def is_on(self, user_id: Optional[str], key: str) -> bool:
        """Whether a feature is exactly true."""
        call = Call("GET", f"/features/{path_member('key', key)}", query={"userId": user_id})
        return self._send(call)["value"] is True


class Plans(Group):
    """Lists the plans on offer."""

    def list(self) -> List[Plan]:
        return cast(List[Plan], self._send(Call("GET", "/plans")))

    def rates(self) -> List[Rate]:
        """Lists what calls cost in credits: the first rate that covers an event is its rate."""
        return cast(List[Rate], self._send(Call("GET", "/rates"))["rates"])


class Refusals(Group):
    """Reads users who hit a limit."""

    def list(
        self,
        *,
        user_id: Optional[str] = None,
        event: Optional[str] = None,
        refused_by: Optional[str] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> RefusalPage:
        """Lists refused calls, newest first; alike ones of an hour are one."""
        query = {"userId": user_id, "event": event, "refusedBy": refused_by, "limit": limit, "offset": offset}
        return cast(RefusalPage, self._send(Call("GET", "/refusals", query=query)))


class Runs(Group):
    """Runs: the tasks of agents, each with limits that all of its calls share."""

    def create(
        self,
        user_id: str,
        limits: Sequence[RunInputLimits],
        *,
        name: Optional[str] = None,
        parent_run_id: Optional[str] = None,
        ttl_seconds: Optional[float] = None,
        metadata: Optional[Metadata] = None,
    ) -> Run:
        """Opens a run."""
        body = {
            "userId": user_id,
            "limits": limits,
            "name": name,
            "parentRunId": parent_run_id,
            "ttlSeconds": ttl_seconds,
            "metadata": metadata,
        }
        return cast(Run, self._send(Call("POST", "/runs", body)))

    def get(self, run_id: str) -> RunDetail:
        """Reads a run."""
        return cast(RunDetail, self._send(Call("GET", f"/runs/{path_member('run_id', run_id)}")))

    def list(
        self,
        user_id: str,
        *,
        status: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> RunPage:
        """Lists a user's runs, newest first."""
        query = {"userId": user_id, "status": status, "limit": limit, "cursor": cursor}
        return cast(RunPage, self._send(Call("GET", "/runs", query=query)))

    def all(self, user_id: str, *, status: Optional[str] = None) -> Iterator[RunDetail]:
        """All runs of a user, newest first, page by page."""
        return _all(lambda cursor: self.list(user_id, status=status, limit=100, cursor=cursor), "runs", "cursor")

    def end(self, run_id: str, *, reason: Optional[str] = None) -> Run:
        """Ends a run and the runs within it."""
        path = f"/runs/{path_member('run_id', run_id)}/end"
        return cast(Run, self._send(Call("POST", path, {"reason": reason})))


class Subscriptions(Group):
    """Writes and ends subscriptions."""

    def upsert(
        self,
        user_id: str,
        plan_id: str,
        *,
        provider: Optional[str] = None,
        external_id: Optional[str] = None,
        quantity: Optional[int] = None,
        trial: Optional[bool] = None,
        starts_at: Optional[Moment] = None,
        ends_at: Optional[Moment] = None,
        cycle_start: Union[Moment, None, Omitted] = OMIT,
        custom_limits: Union[Mapping[str, SubscriptionInputCustomLimits], None, Omitted] = OMIT,
        custom_features: Union[Mapping[str, FeatureValue], None, Omitted] = OMIT,
        at: Optional[Moment] = None,
    ) -> Subscription:
        """Writes a subscription: a new one, or the one with this ``provider`` and ``external_id``.

        :param cycle_start: None: the anchor of the plan; left out: unchanged
        :param custom_limits: None: those of the plan; left out: unchanged
        :param custom_features: None: those of the plan; left out: unchanged
        :param at: when to change to the plan: a later time, or ``"period_end"``
        """
        body = {
            "userId": user_id,
            "planId": plan_id,
            "provider": provider,
            "externalId": external_id,
            "quantity": quantity,
            "trial": trial,
            "startsAt": starts_at,
            "endsAt": ends_at,
            "cycleStart": nullable(cycle_start),
            "customLimits": nullable(custom_limits),
            "customFeatures": nullable(custom_features),
            "at": at,
        }
        return cast(Subscription, self._send(Call("POST", "/subscriptions", body)))

    def unschedule(
        self, user_id: str, *, provider: Optional[str] = None, external_id: Optional[str] = None
    ) -> Subscription:
        """Calls off a change of plan that was asked for ahead."""
        query = {"userId": user_id, "provider": provider, "externalId": external_id}
        return cast(Subscription, self._send(Call("DELETE", "/subscriptions/scheduled", query=query)))

    def cancel(
        self,
        user_id: str,
        *,
        provider: Optional[str] = None,
        external_id: Optional[str] = None,
        ends_at: Optional[Moment] = None,
        reason: Optional[str] = None,
    ) -> CanceledSubscription:
        """Ends a subscription, now or later."""
        query = {
            "userId": user_id,
            "provider": provider,
            "externalId": external_id,
            "endsAt": ends_at,
            "reason": reason,
        }
        return cast(CanceledSubscription, self._send(Call("DELETE", "/subscriptions", query=query)))


class TestClock(Group):
    """The clock of test mode, for tests of your own product: a month passes in one call."""

    __test__ = False

    def read(self) -> TestClockAnswer:
        """Reads the time of test mode."""
        return cast(TestClockAnswer, self._send(Call("GET", "/test-clock")))

    def move(
        self, *, advance_seconds: Optional[float] = None, now: Optional[Moment] = None
    ) -> TestClockAnswer:
        """Moves it forward, by seconds or to a time."""
        body = {"advanceSeconds": advance_seconds, "now": now}
        return cast(TestClockAnswer, self._send(Call("POST", "/test-clock", body)))


class TopUps(Group):
    """Packs that users buy automatically when their credits run low."""

    def set(
        self,
        user_id: str,
        pack_id: str,
        *,
        below: float,
        max_per_month: int,
        quantity: Optional[int] = None,
        stripe_customer_id: Optional[str] = None,
        stripe_payment_method_id: Optional[str] = None,
        enabled: Optional[bool] = None,
    ) -> TopUpSetting:
        """Lets a user buy a pack when less than ``below`` is left, for at most ``max_per_month`` in a UTC month.

        The first time your backend gives the customer and the saved card in Stripe.

        :param max_per_month: in the smallest unit of the currency
        """
        body = {
            "packId": pack_id,
            "below": below,
            "quantity": quantity,
            "maxPerMonth": max_per_month,
            "stripeCustomerId": stripe_customer_id,
            "stripePaymentMethodId": stripe_payment_method_id,
            "enabled": enabled,
        }
        return cast(TopUpSetting, self._send(Call("PUT", _top_up_path(user_id), body)))

    def get(self, user_id: str) -> TopUpSetting:
        """Reads the setting of a user; raises ``not_found`` where there is none."""
        return cast(TopUpSetting, self._send(Call("GET", _top_up_path(user_id))))

    def remove(self, user_id: str) -> DeletedTopUp:
        """Removes the setting. A top-up that may be paid already goes on."""
        return cast(DeletedTopUp, self._send(Call("DELETE", _top_up_path(user_id))))

    def list(self, user_id: str, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> TopUpPage:
        """Lists the top-ups of a user, newest first."""
        query = {"limit": limit, "cursor": cursor}
        return cast(TopUpPage, self._send(Call("GET", f"{_top_up_path(user_id)}s", query=query)))


class UserKeys(Group):
    """Keys that act for one user alone, at the gateway and for its own usage."""

    def create(
        self, user_id: str, *, name: Optional[str] = None, expires_at: Optional[Moment] = None
    ) -> CreatedUserKey:
        """Creates a key. The answer shows it once."""
        body = {"name": name, "expiresAt": expires_at}
        return cast(CreatedUserKey, self._send(Call("POST", _keys_path(user_id), body)))

    def list(self, user_id: str) -> List[UserKey]:
        """Lists the keys of a user that are not revoked, newest first."""
        return cast(List[UserKey], self._send(Call("GET", _keys_path(user_id)))["keys"])

    def revoke(self, user_id: str, user_key_id: str) -> None:
        """Revokes a key. Every call that begins after the answer refuses it."""
        self._send(Call("DELETE", f"{_keys_path(user_id)}/{path_member('user_key_id', user_key_id)}"))


class Users(Group):
    """Reads everything about a user."""

    def get(self, user_id: str) -> User:
        return cast(User, self._send(Call("GET", f"/users/{path_member('user_id', user_id)}")))


def _top_up_path(user_id: str) -> str:
    return f"/users/{path_member('user_id', user_id)}/top-up"


def _keys_path(user_id: str) -> str:
    return f"/users/{path_member('user_id', user_id)}/keys"


def _all(read: Callable[[Optional[str]], Any], rows: str, next_cursor: str) -> Iterator[Any]:
    cursor: Optional[str] = None
    while True:
        page = read(cursor)
        yield from page[rows]
        cursor = page[next_cursor]
        if cursor is None:
            return


def _is_not_processed(result: AliasResult) -> bool:
    error = cast(Dict[str, Any], result).get("error")
    return error is not None and error["code"] == "not_processed"
