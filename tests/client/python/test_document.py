"""The client has every call of the document, with every member of its input."""

import inspect
import json
import os
import unittest
import urllib.request
from typing import Any, Dict, List, Set, Tuple

from holdfast import Holdfast
from holdfast.groups import Group
from holdfast.wire import Call

URL = os.environ["HOLDFAST_URL"]
OTHER_TAGS = {"Stripe", "Gateway"}
# The client sends calls together by itself.
WITHOUT_METHOD = {"batch"}
# The older place of the same members.
OLD = {"options"}
ITERATORS = {"children_all", "members_all", "history_all", "all"}
NO_CALLS = {"with_options", "close", "flush", "reservation", "run", "track_later", "watch_usage"}


class Recorder:
    def __init__(self) -> None:
        self.calls: List[Call] = []

    def __call__(self, call: Call, *_: Any) -> Any:
        self.calls.append(call)
        results = [{"billableOperations": 0}]
        return {"results": results, "keys": [], "rates": [], "value": True, "optedOut": True, "jobId": "x", "allowed": False, "reasons": []}


def dummy(parameter: inspect.Parameter) -> Any:
    known: Dict[str, Any] = {
        "pairs": [{"from": "a", "to": "b"}],
        "events": [{}],
        "wait_seconds": 0,
        "dry_run": False,
        "chunk_size": 1,
        "token": "x",
    }
    return known.get(parameter.name, "x")


def calls_of_client() -> Dict[Tuple[str, str], Set[str]]:
    """The members of each call, by method and path."""
    recorder = Recorder()
    client = Holdfast(api_key="sk_test_x", base_url=URL, coalesce=False)
    client._send = recorder  # type: ignore[method-assign]
    client._decisions._send = recorder  # type: ignore[assignment]
    client._make_groups()
    owners = [client, *(group for group in vars(client).values() if isinstance(group, Group))]
    for owner in owners:
        for name, method in inspect.getmembers(owner, inspect.ismethod):
            if name.startswith("_") or name in NO_CALLS | ITERATORS:
                continue
            method(**{one.name: dummy(one) for one in inspect.signature(method).parameters.values()})
    recorder.calls.append(client.watch_usage("x", "x")._call)
    return {
        (call.method, call.path.replace("/x", "/{}")): set(call.body or {}) | set(call.query)
        for call in recorder.calls
    }


def members_of(document: Dict[str, Any], schema: Dict[str, Any]) -> Set[str]:
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].split("/")[-1]]
    forms = [schema, *schema.get("allOf", []), *schema.get("anyOf", []), *schema.get("oneOf", [])]
    own = {name for form in forms for name in form.get("properties", {})}
    return own.union(*(members_of(document, form) for form in forms[1:]))


class DocumentTest(unittest.TestCase):
    def test_every_call_has_every_member(self) -> None:
        with urllib.request.urlopen(f"{URL}/api/openapi.json") as answer:
            document = json.load(answer)
        known = calls_of_client()
        missing: List[str] = []
        for path, operations in document["paths"].items():
            if not path.startswith("/api/v1/"):
                continue
            for method, operation in operations.items():
                if OTHER_TAGS & set(operation["tags"]) or operation["operationId"] in WITHOUT_METHOD:
                    continue
                inner = "/".join("{}" if part.startswith("{") else part for part in path[7:].split("/"))
                members = known.get((method.upper(), inner))
                if members is None:
                    missing.append(f"{operation['operationId']}: no call")
                    continue
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                asked = members_of(document, content.get("schema", {})) | {
                    parameter["name"]
                    for parameter in operation.get("parameters", [])
                    if parameter.get("in") == "query"
                }
                left_out = asked - members - OLD
                missing += [f"{operation['operationId']}: {name}" for name in sorted(left_out)]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
