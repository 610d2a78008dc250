// The checker of linearizability by itself: which orders explain what was answered, and which do not.

import assert from "node:assert/strict";
import type { Input, Operation } from "../../model/document.ts";
import { shadow } from "../../model/shadow.ts";
import { catalogOf, limit, pack } from "../../model/support.ts";
import { linearChecker } from "./linear.ts";
import type { Attempt, Call, SimRequest } from "../history.ts";
import type { Tenant } from "../tenants.ts";
import { WORLD } from "../time.ts";
import type { Scene } from "../watch.ts";

const CATALOG = { ...catalogOf({ id: "plan", limits: [limit("lg", 10)] }), packs: [pack("wallet")] };
const TENANT = {
  catalog: CATALOG,
  caps: { mode: "live" },
  webhooks: [],
  isCanary: false,
} as unknown as Tenant;
const NOW = Date.parse("2026-03-10T12:00:00.000Z");

/** A call, and its places in the order of all that was noted. */
interface Told {
  readonly op: Operation;
  readonly input: Input;
  readonly from: number;
  readonly order: number;
  readonly decidedAt: number;
  readonly until: number;
}

const GRANT_C = { op: "grant", input: { userId: "c", packId: "wallet", quantity: 1 } } as const;
const GRANT_A = { op: "grant", input: { userId: "a", packId: "wallet", quantity: 2 } } as const;
const MERGE_C = { op: "alias", input: { from: "c", to: "b" } } as const;
const MERGE_B = { op: "alias", input: { from: "b", to: "a" } } as const;
const LEDGER = { op: "ledger", input: { userId: "a" } } as const;
/** In the ledger of both the row of the first merge comes after the grant to the other user. */
const SYSTEM_ORDER: readonly SimRequest[] = [GRANT_C, GRANT_A, MERGE_C, MERGE_B, LEDGER];

/** Asks the checker about calls that a system answered in its own order, all at one moment. */
function check(told: readonly Told[]): void {
  const system = shadow(CATALOG);
  const replies = new Map(SYSTEM_ORDER.map((request) => [request.op + JSON.stringify(request.input), {
    status: 200,
    body: "",
    isReplayed: false,
    model: system(request as { op: Operation; input: Input }, NOW),
  }]));
  const calls = told.map(({ op, input, from, order, decidedAt, until }, index): Call => {
    const reply = replies.get(op + JSON.stringify(input)) ?? null;
    assert.equal(reply?.model.status, 200);
    const attempts: Attempt[] = [];
    const call: Call = {
      no: index + 1,
      tenant: TENANT,
      bearer: "",
      request: { op, input },
      key: null,
      calledAt: from,
      attempts,
      answeredAt: until,
      answer: reply,
      isGivenUp: false,
      atMs: 0,
    };
    const attempt: Attempt = {
      call,
      id: `call-${index + 1}`,
      process: WORLD,
      sentAt: from,
      ...{ arrivedMs: 0, tookMs: 0 },
      sentOnMs: NOW,
      seenOnMs: [],
      turns: [],
      reply,
      repliedAt: until,
    };
    attempt.turns.push({
      order,
      decidedAt,
      now: NOW,
      lookedAtMs: NOW,
      wroteAtMs: NOW,
      process: WORLD,
      attempt,
      changes: [],
      batch: null,
    });
    attempts.push(attempt);
    return call;
  });
  linearChecker().atEnd?.({ tenants: [TENANT], calls } as unknown as Scene);
}

/** A call that does nothing else while it looks at the clock and decides. */
function atOnce(request: { op: Operation; input: Input }, order: number): Told {
  return { ...request, from: order - 1, order, decidedAt: order, until: order + 1 };
}

Deno.test("a merge is placed where it decided among the turns of the moment at which it read the clock", () => {
  check([
    atOnce(GRANT_C, 2),
    { ...MERGE_C, from: 11, order: 12, decidedAt: 32, until: 33 },
    atOnce(GRANT_A, 22),
    atOnce(MERGE_B, 42),
    atOnce(LEDGER, 52),
  ]);
});

Deno.test("a merge that was answered before another call was sent is not placed after it", () => {
  assert.throws(() =>
    check([
      atOnce(GRANT_C, 2),
      { ...MERGE_C, from: 11, order: 12, decidedAt: 14, until: 15 },
      atOnce(GRANT_A, 22),
      atOnce(MERGE_B, 42),
      atOnce(LEDGER, 52),
    ]), /^Error: call 5 ledger .*\n.*entries\[1\]/);
});
