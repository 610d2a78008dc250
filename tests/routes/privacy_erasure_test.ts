// Erasure: nothing of a person is left in any row of any table, everything else is unchanged, and a person who comes back
// is new.

import assert from "node:assert/strict";
import { addAllUp } from "../../src/operations/sweeps/daily_use.ts";
import type { TestService } from "../support/test_service.ts";
import { Customer } from "./credits_support.ts";
import { connect, eventOf, send, sessionOf, subscriptionOf } from "./stripe_support.ts";
import { assertRefused, dataOf, driftsOf } from "./support.ts";
import { recordAudited } from "../../src/audit/audit.ts";
import {
  another,
  askOf,
  deletePerson,
  dumpOf,
  emptiedServiceOfFile,
  erase,
  feedOf,
  makeZebra,
  MARK,
  newApp,
  newLogged,
  optedOutOf,
  optOut,
  rowsOf,
  statusOf,
  sweep,
  tracesOf,
  type Zebra,
  ZEBRA_IDS,
} from "./privacy_support.ts";

const withService = emptiedServiceOfFile();

/** Tables that rightly differ after a user came and went: sums, clocks, the record of the erasure, the runtime's. */
const NOT_OF_USERS = [
  "keys",
  "operations",
  "credit_issues",
  "daily_use_marks",
  "realms",
  "lease",
  "members",
  "cells",
  "webhooks",
  "stripe_connections",
];
/** Tables that keep something of an erased user, or get rows without a user meanwhile. */
const KEPT = ["erasure_jobs", "consents", "analytics_events", "audit", "failed_requests", "webhook_messages"];

async function bystanders(app: Zebra["customer"]["app"]): Promise<void> {
  for (const key of [app.secretTest, app.secretLive]) {
    const v = new Customer(app, "bystander", key);
    await v.post("/subscriptions", { planId: "plan_pro" });
    await v.hold("image.x", { prompt: "of a bystander", ttlSeconds: 86_400 });
    await v.fund("cpk_wallet", 5, { externalRef: "ref" });
    await v.post("/track", { event: "image.x", prompt: "p", response: "r" });
    await v.post("/track", { userId: "bystander-old", event: "image.x" });
    await v.post("/customers/alias", { from: "bystander-old", to: "bystander" });
    await v.post("/reserve", { event: "refused" });
    await dataOf(askOf(v, "/identify", { distinctId: "bystander", properties: { a: 1 } }));
    await dataOf(askOf(v, "/capture", { distinctId: "bystander", event: "seen" }));
    await optOut(v, "bystander", "prompt_logging");
    const options = { key, headers: { "idempotency-key": "bystander-1" } };
    await dataOf(app.call("POST", "/customers/alias/batch", { pairs: [{ from: "x", to: "y" }] }, options));
  }
  // Everybody's id begins with this one's, which says nothing of others.
  await new Customer(app, MARK.slice(0, 5), app.secretTest).post("/track", { event: "image.x", prompt: "p" });
}

/** A subscription and a pack that a user buys by Stripe, and the money for another pack that goes back. */
async function buys(service: TestService, app: Zebra["customer"]["app"], userId: string): Promise<void> {
  const metadata = { holdfast_user: userId, holdfast_pack: "cpk_wallet" };
  const session = (id: string) => sessionOf({ id: `cs_${id}`, payment_intent: `pi_${id}`, metadata });
  const customer = `cus_${userId}`;
  const events = [
    eventOf("customer.subscription.created", subscriptionOf({ id: `sub_${userId}`, metadata, customer })),
    eventOf("checkout.session.completed", session(userId)),
    eventOf("checkout.session.completed", session(`${userId}-back`)),
    eventOf("charge.refunded", { id: "ch_1", payment_intent: `pi_${userId}-back`, refunded: true }),
    eventOf("charge.dispute.funds_withdrawn", {
      id: `dp_${userId}`,
      payment_intent: `pi_${userId}`,
      amount: 1,
    }),
    eventOf(
      "checkout.session.completed",
      sessionOf({ id: `cs_${userId}-none`, client_reference_id: userId, metadata: {} }),
    ),
  ];
  for (const event of events) {
    await dataOf(send(service, app, { ...event, livemode: false }, { mode: "test" }));
  }
}

/** Adds everything that was used so far to the sums by day. */
async function addAllUsed(service: TestService): Promise<void> {
  service.clock.advance(1);
  await addAllUp(service.serving());
}

for (const erasedBy of [`${MARK}-older`, `${MARK}-device`]) {
  Deno.test(`an erasure asked for by ${erasedBy} leaves no trace in any row, and others unchanged`, async () => {
    await withService(async (service) => {
      const app = await newApp(service);
      await connect(service, app, "test");
      await bystanders(app);
      await buys(service, app, "bystander");
      await sweep(service);
      await service.serving().term.refusedCalls.write();
      await addAllUsed(service);
      const before = await dumpOf(service, ["webhook_messages"]);
      const messages = await rowsOf<{ id: string }>(service, "select id from webhook_messages order by id");
      const zebra = await makeZebra(app);
      for (const userId of ZEBRA_IDS) {
        await buys(service, app, userId);
        const action = { who: "admin", via: "console", what: "grantCredits", userId } as const;
        await recordAudited(service.serving(), { ...action, appId: app.appId, mode: "test" }, {
          notes: MARK,
        });
      }
      await service.serving().term.flush();
      await service.serving().term.refusedCalls.write();
      await addAllUsed(service);
      const found = Object.keys(await tracesOf(service, MARK));
      for (
        const table of [
          "users",
          "subscriptions",
          "subscription_events",
          "events",
          "event_logs",
          "refusals",
          "reservations",
          "credit_balances",
          "credit_ledger",
          "idempotency",
          "people",
          "person_ids",
          "analytics_events",
          "consents",
          "audit",
          "webhook_messages",
          "stripe_customers",
          "stripe_subscriptions",
          "stripe_purchases",
          "stripe_payments",
          "stripe_refunds",
          "stripe_disputes",
          "stripe_unhandled",
        ]
      ) {
        assert.ok(found.includes(table), `there is something to erase in ${table}: ${found}`);
      }
      await erase(service, zebra.customer, erasedBy);
      await sweep(service);
      await addAllUsed(service);

      assert.deepEqual(await tracesOf(service, MARK), {});
      const after = await dumpOf(service);
      for (const [table, rows] of Object.entries(before)) {
        if (NOT_OF_USERS.includes(table)) continue;
        if (!KEPT.includes(table)) assert.deepEqual(after[table], rows, table);
        else assert.deepEqual(rows.filter((row) => !after[table]?.includes(row)), [], `${table} lost rows`);
      }
      const kept = await rowsOf<{ id: string; body: string }>(
        service,
        "select id, body from webhook_messages order by id",
      );
      assert.deepEqual(kept.slice(0, -1).map(({ id }) => id), messages.map(({ id }) => id));
      const erased = JSON.parse(kept.at(-1)?.body ?? "");
      assert.equal(erased.type, "person.erased");
      const [job] = await rowsOf<{ id: string }>(service, "select id from erasure_jobs");
      assert.deepEqual(erased.data, { appId: app.appId, mode: "test", jobId: job?.id });
      assert.deepEqual(await driftsOf(service), []);
    });
  });
}

Deno.test("anonymous events, pseudonymous ones and hashed consent entries are what an erasure keeps", async () => {
  await withService(async (service) => {
    const zebra = await makeZebra(await newApp(service));
    await erase(service, zebra.customer, MARK);
    const events = await rowsOf<{ event: string; person_id: string | null }>(
      service,
      "select * from analytics_events order by id",
    );
    assert.deepEqual(events.map(({ event, person_id: id }) => [event, id]), [
      ["anonymous", null],
      ["silenced", null],
    ]);
    const entries = await rowsOf<Record<string, string | null>>(
      service,
      "select * from consents order by id",
    );
    assert.deepEqual(entries.map(({ action, scope, distinct_id: id }) => [action, scope, id]), [
      ["opt_out", "all", null],
      ["opt_out", "prompt_logging", null],
    ]);
    const hashes = entries.map(({ id_hash: hash }) => hash as string);
    for (const hash of hashes) assert.match(hash, /^[A-Za-z0-9_-]{43}$/);
    assert.notEqual(hashes[0], hashes[1], "two ids");
    assert.deepEqual(await rowsOf(service, "select 1 from pseudonyms"), [], "what leads to a pseudonym goes");
    const [job] = await rowsOf(service, "select distinct_ids from erasure_jobs");
    assert.deepEqual(job, { distinct_ids: null });
  });
});

Deno.test("the hash in a kept entry needs the secret and differs between modes", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    const test = new Customer(u.app, "u", u.app.secretTest);
    const hashes = [];
    for (const customer of [u, test]) {
      await optOut(customer, "u", "prompt_logging");
      await erase(service, customer, "u");
    }
    for (const { id_hash: hash } of await rowsOf(service, "select id_hash from consents")) hashes.push(hash);
    assert.equal(hashes.length, 2);
    assert.notEqual(hashes[0], hashes[1]);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode("u")));
    assert.ok(!hashes.includes(digest.toBase64({ alphabet: "base64url", omitPadding: true })));
  });
});

Deno.test("a user that comes back starts empty, and nothing of before is known", async () => {
  await withService(async (service) => {
    const { customer, reservationIds, eventId, balanceId, calls } = await makeZebra(await newApp(service));
    const { app, key } = customer;
    await erase(service, customer, MARK);
    for (const restart of [false, true]) {
      if (restart) await service.restart();
      for (const id of ZEBRA_IDS) {
        const user = await dataOf(app.call("GET", `/users/${id}`, undefined, { key }));
        const { userId, aliases, subscription, history, counters, credits } = user;
        assert.deepEqual({ userId, aliases, subscription, history, counters, credits }, {
          userId: id,
          aliases: [],
          subscription: null,
          history: [],
          counters: [],
          credits: [],
        });
        const { entries } = await dataOf(
          app.call("GET", `/credits/history?userId=${id}`, undefined, { key }),
        );
        assert.deepEqual(entries, []);
        assert.deepEqual(await optedOutOf(customer, id), []);
        assert.deepEqual(await feedOf(customer, `&userId=${id}`), []);
      }
      for (const reservationId of reservationIds) {
        for (const path of ["/commit", "/release"]) {
          assertRefused(await askOf(customer, path, { reservationId }), 404, "not_found");
        }
      }
      assertRefused(await app.call("GET", `/events/${eventId}`, undefined, { key }), 404, "not_found");
      const revoke = await askOf(customer, "/credits/revoke", { balanceId });
      assertRefused(revoke, 404, "credit_balance_not_found");
    }
    for (const [path, body, idempotencyKey] of calls) {
      const headers = { "idempotency-key": idempotencyKey };
      const again = await app.call("POST", path, body, { key, headers });
      assert.equal(again.headers.get("idempotent-replayed"), null, `${path} is a first call again`);
      assert.equal(again.status, path === "/commit" ? 404 : 200, JSON.stringify(again.body));
    }
    await customer.post("/track", { event: "image.x" });
    const counts = await customer.counts("lg_images");
    assert.deepEqual(counts, [3], "what the repeated calls and this one counted");
  });
});

Deno.test("an erased alias relation is gone: the ids are two users afterwards", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    await u.post("/track", { userId: "old", event: "image.x" });
    await u.post("/customers/alias", { from: "old", to: "u" });
    await erase(service, u, "old");
    await u.post("/subscriptions", { planId: "plan_pro" });
    await u.post("/track", { event: "image.x" });
    const old = await dataOf(u.app.call("GET", "/customers/old"));
    assert.deepEqual(old, { canonicalId: "old", aliases: [], duplicateActiveSubscriptions: null });
    const report = await u.post("/customers/alias", { from: "old", to: "other" });
    assert.equal(report.alreadyMerged, false);
  });
});

Deno.test("an alias that was made without consent goes whole, whichever of its ids the erasure names", async () => {
  for (const named of ["u", `anon_${MARK}`]) {
    await withService(async (service) => {
      const u = await newLogged(service);
      const session = `anon_${MARK}`;
      await u.post("/track", { userId: session, event: "image.x", prompt: "p" });
      await dataOf(askOf(u, "/capture", { distinctId: session, event: "seen", properties: { name: MARK } }));
      await dataOf(askOf(u, "/identify", { distinctId: "u", properties: { name: MARK } }));
      const report = await u.post("/customers/alias", { from: session, to: "u" });
      assert.equal(report.analytics, "skipped_consent_required");
      await erase(service, u, named);
      assert.deepEqual(await tracesOf(service, MARK), {}, named);
    });
  }
});

Deno.test("a job has its times by its realm's clock, and no other mode, app or id knows it", async () => {
  await withService(async (service) => {
    const u = await newLogged(service, { mode: "test" });
    const foreign = await another(await newLogged(service), "x");
    await u.pass(86_400);
    const jobId = await deletePerson(u, "u");
    await sweep(service);
    const at = new Date(service.clock.now() + 86_400_000).toISOString();
    assert.deepEqual(await statusOf(u, jobId), {
      status: "completed",
      requestedAt: at,
      startedAt: at,
      completedAt: at,
      errorMessage: null,
    });
    const asked = (key: string, id: string) =>
      u.app.call("GET", `/deletion-status?jobId=${id}`, undefined, { key });
    for (
      const answer of await Promise.all([
        asked(u.app.secretLive, jobId),
        asked(foreign.key, jobId),
        asked(u.key, "job_unknown"),
      ])
    ) {
      assertRefused(answer, 404, "not_found");
    }
    assertRefused(await asked(u.key, ""), 400, "invalid_request");
  });
});

Deno.test("an id that was never seen, and one erased before, are erased as well as any", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    await erase(service, u, "never-seen");
    assert.deepEqual(await tracesOf(service, "never-seen"), {});
    await erase(service, u, "u");
    const before = await dumpOf(service, [...NOT_OF_USERS, "erasure_jobs", "audit"]);
    await erase(service, u, "u");
    assert.deepEqual(await dumpOf(service, [...NOT_OF_USERS, "erasure_jobs", "audit"]), before);
    const jobs = await rowsOf<{ status: string }>(service, "select status from erasure_jobs");
    assert.deepEqual(jobs.map(({ status }) => status), ["completed", "completed", "completed"]);
  });
});

Deno.test("the first answer to an opt-out goes with its user: the same call again opts out again", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    const headers = { "idempotency-key": "of-an-opt-out" };
    const call = () => u.app.call("POST", "/opt-out", { distinctId: "u" }, { headers });
    await dataOf(call());
    await erase(service, u, "u");
    assert.deepEqual(await rowsOf(service, "select key from idempotency"), []);
    await dataOf(call());
    assert.deepEqual(await optedOutOf(u, "u"), ["analytics", "ai_personalization"]);
  });
});

Deno.test("delete-person checks its id", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    for (const distinctId of ["", "x".repeat(201), 7, null, undefined]) {
      assertRefused(await askOf(u, "/delete-person", { distinctId }), 400, "invalid_request");
    }
  });
});

Deno.test("ids with quotes, backslashes and characters of a pattern are erased exactly", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    const ids = ['q"uo\\te', "%", "_", "{a,b}", "é\u{feff}😀", "u\n"];
    for (const userId of ids) {
      await u.post("/track", { userId, event: "image.x", prompt: "p" });
      const options = { headers: { "idempotency-key": `k${ids.indexOf(userId)}` } };
      const pairs = [{ from: `${userId}.`, to: userId }];
      await dataOf(u.app.call("POST", "/customers/alias/batch", { pairs }, options));
    }
    const users = async () =>
      (await rowsOf<{ id: string }>(service, "select id from users where merged_into is null order by key"))
        .map(({ id }) => id);
    for (const [index, id] of ids.entries()) {
      await erase(service, u, id);
      assert.deepEqual(await users(), ["u", ...ids.slice(index + 1)]);
      const left = await rowsOf(service, "select 1 from idempotency");
      // That of the batch, and that of its pair.
      assert.equal(left.length, 2 * (ids.length - index - 1));
    }
  });
});
