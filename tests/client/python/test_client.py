"""The client against a real service: each call that matters, keys, retries, reservations, calls together, webhooks."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, Dict, List, Tuple, cast

from holdfast import Holdfast, HoldfastError, sign_end_user_token, verify_webhook
from holdfast.together import OUT_MAX, Together
from holdfast.transport import CallOptions, Transport
from holdfast.wire import Call

URL = os.environ["HOLDFAST_URL"]
KEY = os.environ["HOLDFAST_KEY"]
PUBLIC_KEY = os.environ["HOLDFAST_PUBLIC_KEY"]
IDENTITY_SECRET = os.environ["HOLDFAST_IDENTITY_SECRET"]


def client(**options: Any) -> Holdfast:
    return Holdfast(**{"api_key": KEY, "base_url": URL, "timeout": 20, **options})


def user_of_plan(name: str) -> str:
    user_id = f"{name}_{time.time_ns()}"
    client().subscriptions.upsert(user_id, "Pro")
    return user_id


class MeteringTest(unittest.TestCase):
    def test_a_reservation_commits_what_the_block_says(self) -> None:
        user_id = user_of_plan("commit")
        asked = {"metadata": {"model": "gpt-4o-mini"}, "input_tokens": 4000, "max_output_tokens": 500}
        with client().reservation(user_id, "chat.reply", **asked) as work:
            work.usage = {"inputTokens": 4000, "outputTokens": 120}
        assert work.commit is not None
        self.assertEqual(work.commit["groups"][0]["current"], 4120)
        self.assertEqual(work.commit["cost"]["cents"], 0.0672)

    def test_a_reservation_without_usage_commits_as_held(self) -> None:
        user_id = user_of_plan("held")
        with client().reservation(user_id, "image.render", count=4):
            pass
        self.assertEqual(client().usage(user_id, "image.render")["counters"][0]["count"], 4)

    def test_an_exception_releases(self) -> None:
        user_id = user_of_plan("released")
        with self.assertRaises(ZeroDivisionError):
            with client().reservation(user_id, "image.render"):
                1 / 0
        self.assertEqual(client().usage(user_id, "image.render")["counters"][0]["count"], 0)

    def test_a_refusal_raises_before_the_block(self) -> None:
        user_id = user_of_plan("refused")
        with self.assertRaises(HoldfastError) as refused:
            with client().reservation(user_id, "image.render", count=101):
                self.fail("the block began")
        self.assertEqual((refused.exception.code, refused.exception.status), ("limit_reached", 429))
        self.assertIn('"Images a month" (resets at ', refused.exception.message)
        answer = client().reserve(user_id, "image.render", count=101)
        self.assertEqual((answer["allowed"], answer["reasons"]), (False, ["limit_reached"]))

    def test_an_asynchronous_reservation(self) -> None:
        user_id = user_of_plan("async")

        async def work() -> None:
            async with client().reservation(user_id, "image.render") as image:
                await asyncio.sleep(0)
                image.actual = {"count": 2}

        asyncio.run(work())
        self.assertEqual(client().usage(user_id, "image.render")["counters"][0]["count"], 2)

    def test_one_key_counts_once(self) -> None:
        user_id = user_of_plan("keys")
        for _ in range(3):
            client().with_options(idempotency_key=f"job_{user_id}").track(user_id, "image.render")
        self.assertEqual(client().usage(user_id, "image.render")["counters"][0]["count"], 1)

    def test_keys_begin_as_the_service_wants(self) -> None:
        user_id = user_of_plan("prefix")
        transport = Transport(KEY, URL, 20, 0, None)
        for _ in range(2):
            transport.send(Call("POST", "/track", {"userId": user_id, "event": "image.render"}))
        self.assertRegex(transport.new_key(), r"^[0-9a-v]{12}\.[0-9a-f]{24}$")
        transport.begin_keys_with("no\n")
        self.assertRegex(transport.new_key(), r"^[0-9a-f]{32}$")
        self.assertEqual(client().usage(user_id, "image.render")["counters"][0]["count"], 2)

    def test_events_later_are_counted_once_each(self) -> None:
        user_id = user_of_plan("later")
        holdfast = client()
        for _ in range(90):
            holdfast.track_later(user_id, "image.render")
        holdfast.flush()
        self.assertEqual(holdfast.usage(user_id, "image.render")["counters"][0]["count"], 90)
        self.assertEqual(len(list(holdfast.events.all(user_id=user_id))), 90)

    def test_errors_have_code_details_and_request(self) -> None:
        with self.assertRaises(HoldfastError) as failed:
            client().with_options(request_id="req_7").reserve("user_1", "image.render", count=-1)
        error = failed.exception
        self.assertEqual((error.code, error.status, error.request_id), ("invalid_request", 400, "req_7"))
        self.assertEqual(error.details[0]["path"], "count")
        with self.assertRaises(HoldfastError) as unsent:
            client().track("user_1", "image.render", metadata={"size": float("nan")})
        self.assertEqual(unsent.exception.code, "invalid_request")

    def test_null_is_sent_where_it_has_a_meaning(self) -> None:
        user_id = user_of_plan("null")
        subscriptions = client().subscriptions
        custom = {"lg_pro_images": {"quota": 7}}
        self.assertEqual(subscriptions.upsert(user_id, "Pro", custom_limits=custom)["customLimits"], custom)
        self.assertEqual(subscriptions.upsert(user_id, "Pro")["customLimits"], custom)
        self.assertIsNone(subscriptions.upsert(user_id, "Pro", custom_limits=None)["customLimits"])

    def test_accounts_and_runs(self) -> None:
        team, member = user_of_plan("team"), user_of_plan("member")
        holdfast = client()
        holdfast.accounts.set_parent(member, team)
        self.assertEqual([child["userId"] for child in holdfast.accounts.children_all(team)], [member])
        with holdfast.run(member, [{"unit": "count", "quota": 1}], name="One image") as run:
            with holdfast.reservation(member, "image.render", run_id=run["runId"]):
                pass
            with self.assertRaises(HoldfastError) as refused:
                with holdfast.reservation(member, "image.render", run_id=run["runId"]):
                    pass
            self.assertEqual(refused.exception.code, "run_limit_reached")
        self.assertEqual(holdfast.runs.get(run["runId"])["status"], "ended")
        self.assertEqual(holdfast.usage(member, "image.render", levels=True)["levels"][0]["counters"][0]["count"], 1)
        holdfast.accounts.set_parent(member, None)
        self.assertEqual(list(holdfast.accounts.children_all(team)), [])

    def test_a_public_key_reads_its_users_usage(self) -> None:
        user_id = user_of_plan("public")
        token = sign_end_user_token(IDENTITY_SECRET, user_id)
        page = client(api_key=PUBLIC_KEY, end_user_token=lambda: token)
        self.assertEqual(page.usage_me()["userId"], user_id)

    def test_a_person_is_exported_and_erased(self) -> None:
        person = f"person_{time.time_ns()}"
        analytics = client().analytics
        analytics.capture("page_seen", distinct_id=person, properties={"page": "/"})
        export = analytics.download_export(analytics.export_person(person)["downloadUrl"])
        self.assertEqual(export["events"]["analytics"][0]["event"], "page_seen")
        job = analytics.delete_person(person)
        while analytics.deletion_status(job)["status"] in ("queued", "in_progress"):
            time.sleep(0.05)
        self.assertEqual(analytics.deletion_status(job)["status"], "completed")

    def test_usage_is_watched(self) -> None:
        user_id = user_of_plan("watched")
        stream = client().watch_usage(user_id, "image.render")
        counts = []
        for usage in stream:
            counts.append(usage["counters"][0]["count"])
            if counts[-1] == 1:
                stream.close()
                break
            client().track(user_id, "image.render")
        self.assertEqual(counts, [0, 1])


class TogetherTest(unittest.TestCase):
    def test_many_threads_never_pass_the_quota(self) -> None:
        user_id = user_of_plan("threads")
        holdfast = client()

        def work(_: int) -> bool:
            hold = holdfast.reserve(user_id, "image.render")
            if hold["allowed"]:
                holdfast.commit(hold["reservationId"])
            return hold["allowed"]

        with ThreadPoolExecutor(64) as threads:
            allowed = sum(threads.map(work, range(300)))
        self.assertEqual(allowed, 100)
        self.assertEqual(holdfast.usage(user_id, "image.render")["counters"][0]["count"], 100)


    def test_a_late_reservation_is_given_back_unless_its_key_was_sent_again(self) -> None:
        for asks_again, released in ((False, ["rsv_job"]), (True, [])):
            together, transport = self.given_up()
            if asks_again:
                together._enter(JOB, CallOptions(idempotency_key="job"))
            transport.answered.set()
            together._senders.shutdown()
            together._releaser.shutdown()
            self.assertEqual(transport.released, released)

    def test_a_batch_whose_callers_have_gone_holds_up_no_call(self) -> None:
        together, transport = self.given_up()
        self.assertIsNone(together._enter(TRACK, CallOptions()), "sent at once")
        self.assertIsNotNone(together._enter(TRACK, CallOptions()), "waits for its place")
        transport.answered.set()
        together._senders.shutdown()
        self.assertEqual(together._out, OUT_MAX)

    def test_calls_by_themselves_take_places_of_requests_too(self) -> None:
        transport = SlowSingles()
        together = Together(cast(Transport, transport))
        with ThreadPoolExecutor(16) as threads:
            for _ in range(16):
                threads.submit(together.send, TRACK, CallOptions(request_id="job"))
        self.assertEqual((transport.sent, transport.out_max, together._out), (16, OUT_MAX, 0))

    def test_a_call_of_a_lost_batch_has_the_rest_of_its_time(self) -> None:
        transport = LostBatch()
        together = Together(cast(Transport, transport))
        for _ in range(OUT_MAX):
            together._enter(TRACK, CallOptions())
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(together.send, JOB, CallOptions(timeout=30))
            while not together._queue:
                time.sleep(0.001)
            together._leave()
            asked.result()
        self.assertLess(transport.timeout, 30)

    def given_up(self) -> Tuple[Together, "SlowBatch"]:
        """Four requests out, one of them a batch of a reserve that has been given up."""
        transport = SlowBatch()
        together = Together(cast(Transport, transport))
        for _ in range(OUT_MAX):
            together._enter(TRACK, CallOptions())
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(together.send, JOB, CallOptions(idempotency_key="job", timeout=0.5))
            while not together._queue:
                time.sleep(0.001)
            together._leave()
            with self.assertRaises(HoldfastError):
                asked.result()
        return together, transport


JOB = Call("POST", "/reserve", {"userId": "user_1", "event": "image.render"})
TRACK = Call("POST", "/track", {"userId": "user_1", "event": "image.render"})


class SlowBatch:
    """A transport whose batches are answered when a test says."""

    def __init__(self) -> None:
        self.answered = threading.Event()
        self.released: List[Any] = []

    def limit_of(self, _call: Call, options: CallOptions) -> float:
        return options.timeout or 30

    def retries_of(self, _options: CallOptions) -> int:
        return 0

    def begin_keys_with(self, _prefix: object) -> None:
        pass

    def once(self, *_: Any) -> Any:
        self.answered.wait()
        held = {"ok": True, "status": 200, "data": {"allowed": True, "reservationId": "rsv_job"}}
        return SimpleNamespace(status=200, request_id=None, body={"ok": True, "data": {"results": [held]}})

    def send(self, call: Call, _options: CallOptions) -> None:
        self.released.append((call.body or {})["reservationId"])


class SlowSingles(SlowBatch):
    """A transport of single calls, which counts those that are out."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.sent = self.out = self.out_max = 0

    def new_key(self) -> str:
        return "key"

    def send(self, _call: Call, _options: CallOptions) -> None:
        with self.lock:
            self.sent += 1
            self.out += 1
            self.out_max = max(self.out_max, self.out)
        time.sleep(0.01)
        with self.lock:
            self.out -= 1


class LostBatch(SlowSingles):
    """A transport that answers no batch."""

    def once(self, *_: Any) -> Any:
        raise HoldfastError("network_error", 0, "The connection broke")

    def send(self, _call: Call, options: CallOptions) -> None:
        self.timeout = options.timeout or 0


class FaultyTest(unittest.TestCase):
    """What the client does when the service fails."""

    def test_a_write_that_fails_is_sent_again_with_its_key(self) -> None:
        answers = [(503, {"ok": False, "error": {"code": "unavailable", "message": "Later"}})]
        with Server(answers) as server:
            client(base_url=server.url, coalesce=False).track("user_1", "image.render")
        keys = [head["idempotency-key"] for head, _ in server.requests]
        self.assertEqual((len(keys), len(set(keys))), (2, 1))

    def test_work_is_allowed_unmetered_and_tracked_later(self) -> None:
        failed = (500, {"ok": False, "error": {"code": "internal_error", "message": "Broken"}})
        told: List[str] = []
        with Server([failed]) as server:
            holdfast = client(
                base_url=server.url,
                coalesce=False,
                max_retries=0,
                on_unavailable="allow",
                on_allowed_unmetered=lambda error, work: told.append(error.code),
            )
            with holdfast.reservation("user_1", "image.render", count=2) as work:
                self.assertIsNone(work.reservation_id)
                work.actual = {"count": 3}
            holdfast.flush()
        self.assertEqual(told, ["internal_error"])
        self.assertEqual(server.requests[1][1]["events"][0]["count"], 3)

    def test_a_failed_commit_is_tried_again_with_its_key(self) -> None:
        held = (200, {"ok": True, "data": {"allowed": True, "matched": True, "reservationId": "r1"}})
        failed = (503, {"ok": False, "error": {"code": "unavailable", "message": "Later"}})
        told: List[Dict[str, Any]] = []
        with Server([held, failed]) as server:
            holdfast = client(
                base_url=server.url,
                coalesce=False,
                max_retries=0,
                on_commit_error=lambda error, commit: told.append(commit),
            )
            with holdfast.reservation("user_1", "image.render"):
                pass
            holdfast.flush()
        self.assertEqual([commit["isRetried"] for commit in told], [True])
        keys = [head["idempotency-key"] for head, _ in server.requests[1:]]
        self.assertEqual((len(keys), len(set(keys))), (2, 1))

    def test_the_breaker_answers_at_once(self) -> None:
        failed = (500, {"ok": False, "error": {"code": "internal_error", "message": "Broken"}})
        with Server([failed] * 20) as server:
            holdfast = client(base_url=server.url, coalesce=False, max_retries=0)
            for _ in range(10):
                with self.assertRaises(HoldfastError):
                    holdfast.reserve("user_1", "image.render")
        self.assertEqual(len(server.requests), 5)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_process_has_connections_and_threads_of_its_own(self) -> None:
        with Server([], delay=0.05) as server:
            holdfast = client(base_url=server.url, max_retries=0)

            def track_all() -> None:
                with ThreadPoolExecutor(8) as threads:
                    list(threads.map(lambda _: holdfast.track("user_1", "image.render"), range(16)))

            track_all()
            ports = {head["port"] for head, _ in server.requests}
            child = os.fork()
            if child == 0:
                try:
                    track_all()
                    os._exit(0)
                except BaseException:
                    os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue({head["port"] for head, _ in server.requests} - ports)
            self.assertEqual(ports & {head["port"] for head, _ in server.requests[-4:]}, set())

    def test_a_service_without_batches_gets_single_calls(self) -> None:
        missing = {"ok": False, "error": {"code": "not_found", "message": "Unknown endpoint"}}
        with Server([], by_path={"/api/v1/batch": (404, missing)}, delay=0.02) as server:
            holdfast = client(base_url=server.url)
            with ThreadPoolExecutor(32) as threads:
                list(threads.map(lambda _: holdfast.track("user_1", "image.render"), range(64)))
        paths = [head["path"] for head, _ in server.requests]
        self.assertEqual(paths.count("/api/v1/track"), 64)
        self.assertLessEqual(paths.count("/api/v1/batch"), 4)


class Server:
    """A service that answers as a test says, and then with successes."""

    def __init__(self, answers: List[Tuple[int, Any]], by_path: Dict[str, Tuple[int, Any]] = {}, delay: float = 0) -> None:
        self.requests: List[Tuple[Dict[str, str], Any]] = []
        waiting = list(answers)
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                head = {name.lower(): value for name, value in self.headers.items()}
                requests.append(({**head, "path": self.path, "port": str(self.client_address[1])}, body))
                time.sleep(delay)
                results = [{"ok": True, "status": 200, "data": {}} for _ in body.get("events", body.get("calls", []))]
                success = (200, {"ok": True, "data": {"results": results}})
                status, answer = by_path.get(self.path) or (waiting.pop(0) if waiting else success)
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Server":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()


class WebhookTest(unittest.TestCase):
    SECRET = "whsec_" + base64.b64encode(b"a secret of a webhook").decode()

    def signed(self, body: bytes, at: int) -> Dict[str, str]:
        key = base64.b64decode(self.SECRET[6:])
        digest = hmac.new(key, f"whm_1.{at}.".encode() + body, hashlib.sha256).digest()
        signature = "v1," + base64.b64encode(digest).decode()
        return {"Webhook-Id": "whm_1", "Webhook-Timestamp": str(at), "Webhook-Signature": signature}

    def test_a_message_is_verified(self) -> None:
        body = b'{"type":"ping","timestamp":"2026-01-01T00:00:00.000Z","data":{}}'
        headers = self.signed(body, int(time.time()))
        self.assertEqual(verify_webhook(secret=self.SECRET, headers=headers, body=body)["type"], "ping")
        for faulty in [(headers, body + b" "), (self.signed(body, int(time.time()) - 400), body), ({}, body)]:
            with self.assertRaises(HoldfastError) as refused:
                verify_webhook(secret=self.SECRET, headers=faulty[0], body=faulty[1])
            self.assertEqual(refused.exception.code, "invalid_webhook")


if __name__ == "__main__":
    unittest.main()
