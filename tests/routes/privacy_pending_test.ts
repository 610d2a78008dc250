// A pending erasure: what shows of the person meanwhile, calls that come between, restarts, and load.

import assert from "node:assert/strict";
import { Customer } from "./credits_support.ts";
import { assertRefused, dataOf, driftsOf } from "./support.ts";
import type { Answer, TestService } from "../support/test_service.ts";
import {
  another,
  askOf,
  deletePerson,
  emptiedServiceOfFile,
  erase,
  feedOf,
  makeZebra,
  MARK,
  newApp,
  newLogged,
  optOut,
  rowsOf,
  statusOf,
  stopAt,
  stopQueued,
  sweep,
  tracesOf,
} from "./privacy_support.ts";

const withService = emptiedServiceOfFile();

/** Users that are hidden as pending deletion although no erasure is open. */
async function stuck(service: TestService): Promise<unknown[]> {
  return await rowsOf(service, "select id from users where erasing");
}

Deno.test("a pending person is in no feed, captures nothing and is metered until the job's turn", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    const v = await another(u, "v");
    const { eventId } = await u.post("/track", { event: "image.x", prompt: "p" });
    const { eventId: others } = await v.post("/track", { event: "image.x" });
    await dataOf(askOf(u, "/capture", { distinctId: "u", event: "before" }));
    const held = await u.hold("image.x", { count: 2 });
    const stop = stopQueued(service);
    const jobId = await deletePerson(u, "u");
    await stop.reached;
    assert.deepEqual(await statusOf(u, jobId), {
      status: "queued",
      requestedAt: new Date(service.clock.now()).toISOString(),
      startedAt: null,
      completedAt: null,
      errorMessage: null,
    });
    for (const query of ["", "&eventType=image.x"]) {
      assert.deepEqual((await feedOf(u, query)).map(({ id }) => id), [others]);
    }
    assert.deepEqual(await feedOf(u, "&userId=u"), []);
    assertRefused(await u.app.call("GET", `/events/${eventId}`), 404, "not_found");
    const captured = await dataOf(askOf(u, "/capture", { distinctId: "u", event: "meanwhile" }));
    assert.deepEqual(captured, { accepted: true });
    await dataOf(askOf(u, "/identify", { distinctId: "u", properties: { name: "meanwhile" } }));
    assert.deepEqual(await tracesOf(service, "meanwhile"), {});
    await u.commit(held);
    assert.equal((await u.post("/track", { event: "image.x" })).matchStatus, "matched");
    assert.deepEqual(await u.counts("lg_images"), [4]);
    assert.deepEqual(await feedOf(u, "&userId=u"), []);
    assert.equal(await deletePerson(u, "u"), jobId, "the open job is answered");
    stop.go();
    await sweep(service);
    assert.equal((await statusOf(u, jobId)).status, "completed");
    assert.deepEqual((await u.get("/usage")).counters, []);
    await u.post("/subscriptions", { planId: "plan_pro" });
    await u.post("/track", { event: "image.x" });
    assert.deepEqual(await u.counts("lg_images"), [1]);
    assert.equal((await feedOf(u, "&userId=u")).length, 1, "who comes back is shown");
    assert.deepEqual(await stuck(service), []);
  });
});

Deno.test("a running job has its status, and every distinct id of its person is hidden", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    await u.post("/track", { userId: "device", event: "image.x" });
    for (const distinctId of ["u", "device"]) await dataOf(askOf(u, "/identify", { distinctId }));
    await dataOf(askOf(u, "/alias", { distinctId: "u", alias: "device" }));
    const stop = stopAt(service, /with canonical as \(/);
    const jobId = await deletePerson(u, "u");
    await stop.reached;
    assert.deepEqual(await feedOf(u), []);
    const next = stopAt(service, /update erasure_jobs set status = 'in_progress'/);
    stop.go();
    await next.reached;
    const last = stopAt(service, /with canonical as \(/);
    next.go();
    await last.reached;
    service.clock.advance(1000);
    const { status, startedAt, completedAt } = await statusOf(u, jobId);
    const at = new Date(service.clock.now() - 1000).toISOString();
    assert.deepEqual({ status, startedAt, completedAt }, {
      status: "in_progress",
      startedAt: at,
      completedAt: null,
    });
    last.go();
    await sweep(service);
    const done = await statusOf(u, jobId);
    assert.deepEqual([done.status, done.startedAt], ["completed", at]);
    assert.equal(done.completedAt, new Date(service.clock.now()).toISOString());
  });
});

Deno.test("a sweep between the making of a job and its call's end leaves no person hidden", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    const stop = stopAt(service, /insert into erasure_jobs/);
    const other = deletePerson(u, "other");
    await stop.reached;
    const database = service.statements;
    const { transaction } = database;
    let swept: Promise<unknown> = Promise.resolve();
    database.transaction = async (work) => {
      let isMaking = false;
      const done = await transaction((session) => {
        const query: typeof session.query = (text, params) => {
          isMaking ||= /insert into erasure_jobs/.test(text);
          return session.query(text, params);
        };
        return work({ ...session, query });
      });
      if (isMaking) {
        database.transaction = transaction;
        swept = sweep(service);
        await Promise.race([swept, new Promise((resolve) => setTimeout(resolve, 300))]);
      }
      return done;
    };
    const mine = deletePerson(u, "u");
    stop.go();
    const jobs = await Promise.all([other, mine]);
    await swept;
    await sweep(service);
    for (const jobId of jobs) assert.equal((await statusOf(u, jobId)).status, "completed");
    assert.deepEqual(await stuck(service), []);
    const { eventId } = await u.post("/track", { event: "image.x" });
    assert.deepEqual((await feedOf(u)).map(({ id }) => id), [eventId]);
  });
});

Deno.test("a second call while the job erases hides no person for good", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    const stop = stopAt(service, /update erasure_jobs set status = \$2, distinct_ids = null/);
    const first = await deletePerson(u, "u");
    await stop.reached;
    await u.post("/track", { event: "image.x" });
    const second = await deletePerson(u, "u");
    stop.go();
    await sweep(service);
    for (const jobId of [first, second]) assert.equal((await statusOf(u, jobId)).status, "completed");
    assert.deepEqual(await stuck(service), []);
    const { eventId } = await u.post("/track", { event: "image.x" });
    assert.deepEqual((await feedOf(u)).map(({ id }) => id), [eventId]);
  });
});

for (const place of [/update erasure_jobs set status = 'in_progress'/, /with canonical as \(/]) {
  for (const isLate of [false, true]) {
    const when = isLate ? "only after the new one has" : "while the new one does";
    Deno.test(`an erasure survives a restart, and the old term goes on ${when}: ${place.source}`, async () => {
      await withService(async (service) => {
        const { customer } = await makeZebra(await newApp(service));
        const stop = stopAt(service, place);
        const jobId = await deletePerson(customer, MARK);
        await stop.reached;
        await service.restart();
        assert.deepEqual(await feedOf(customer), []);
        await customer.post("/track", { event: "image.x", prompt: `again ${MARK}` });
        if (!isLate) stop.go();
        await sweep(service);
        stop.go();
        await sweep(service);
        assert.equal((await statusOf(customer, jobId)).status, "completed");
        assert.deepEqual(await tracesOf(service, MARK), {});
        assert.deepEqual(await driftsOf(service), []);
      });
    });
  }
}

Deno.test("who joins an erased user while its job is at work goes with it, without a trace", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    await u.post("/track", { event: "image.x" });
    await u.post("/track", { userId: MARK, event: "image.x", prompt: MARK });
    await optOut(u, MARK, "prompt_logging");
    const queued = stopQueued(service);
    const jobId = await deletePerson(u, "u");
    await queued.reached;
    // The bulk of the history goes while calls go on.
    const database = service.statements;
    const { transaction } = database;
    const bulk = Promise.withResolvers<void>();
    const joined = Promise.withResolvers<void>();
    let isStarting = true;
    database.transaction = async (work) => {
      if (isStarting) {
        isStarting = false;
        return await transaction(work);
      }
      database.transaction = transaction;
      bulk.resolve();
      await joined.promise;
      return await transaction(work);
    };
    queued.go();
    await bulk.promise;
    const options = { headers: { "idempotency-key": "joined" } };
    const pairs = [{ from: MARK, to: "u" }];
    const alias = dataOf(u.app.call("POST", "/customers/alias/batch", { pairs }, options));
    const { results } = await alias;
    assert.equal(results[0].ok, true);
    joined.resolve();
    await sweep(service);
    assert.equal((await statusOf(u, jobId)).status, "completed");
    assert.deepEqual(await tracesOf(service, MARK), {});
  });
});

Deno.test("first answers of others are replayed as before whenever an erasure forgets", async () => {
  await withService(async (service) => {
    const u = await newLogged(service, { mode: "test" });
    const { term } = service.serving();
    const headers = { "idempotency-key": "clock-1" };
    const advance = () => u.app.call("POST", "/test-clock", { advanceSeconds: 60 }, { key: u.key, headers });
    const first = await advance();
    assert.equal(first.status, 200);
    term.idempotency.forget([4711]);
    const again = await advance();
    assert.deepEqual([again.headers.get("idempotent-replayed"), again.body], ["true", first.body]);
  });
});

/** What calls in parallel to erasures may be answered with. */
const ALLOWED = [200, 404, 503];

Deno.test("calls beside an erasure are answered or may be sent again, and the books add up", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    const answers: Answer[] = [];
    let isErasing = true;
    const load = async (worker: number) => {
      const ask = async (path: string, body: object) => {
        const answer = await askOf(u, path, body);
        answers.push(answer);
        return answer.body?.data ?? {};
      };
      for (let turn = 0; turn < 5 || (isErasing && turn < 500); turn++) {
        const held = await ask("/reserve", { userId: "u", event: "x", prompt: "p", count: 1 });
        await ask("/credits/grant", { userId: "u", packId: "cpk_wallet", quantity: 5 });
        if (held.reservationId !== undefined) {
          await ask(turn % 2 === 0 ? "/commit" : "/release", { reservationId: held.reservationId });
        }
        await ask("/track", { userId: turn % 2 === 0 ? "u" : "u-old", event: "x", prompt: "p" });
        await ask("/customers/alias/batch", { pairs: [{ from: "u-old", to: "u" }] });
        await ask("/capture", { distinctId: "u", event: `worker ${worker}` });
        await ask("/opt-out", { distinctId: "u", scope: "prompt_logging" });
        answers.push(await u.ask("GET", "/usage"));
      }
    };
    const erasures = async () => {
      for (let round = 0; round < 3; round++) {
        answers.push(await askOf(u, "/delete-person", { distinctId: round % 2 === 0 ? "u" : "u-old" }));
        await sweep(service);
      }
      isErasing = false;
    };
    await Promise.all([erasures(), ...Array.from({ length: 4 }, (_, worker) => load(worker))]);
    const odd = answers.filter(({ status }) => !ALLOWED.includes(status));
    assert.deepEqual(odd.map(({ status, body }) => [status, body]), []);
    assert.ok(answers.filter(({ status }) => status === 200).length > 50);
    assert.deepEqual(await driftsOf(service), []);
    await erase(service, u, "u");
    await erase(service, u, "u-old");
    assert.deepEqual(await stuck(service), []);
    assert.deepEqual(await rowsOf(service, "select 1 from events union all select 1 from event_logs"), []);
    assert.deepEqual(await driftsOf(service), []);
  });
});

Deno.test("ten erasures at once, beside the calls of others, all complete and touch no other person", async () => {
  await withService(async (service) => {
    const u = await newLogged(service);
    const ids = Array.from({ length: 10 }, (_, index) => `${MARK}-${index}`);
    for (const userId of ids) {
      await u.post("/subscriptions", { userId, planId: "plan_pro" });
      await u.post("/reserve", { userId, event: "image.x", prompt: MARK });
      await u.post("/track", { userId, event: "image.x", prompt: MARK });
      await dataOf(askOf(u, "/identify", { distinctId: userId, properties: { name: MARK } }));
    }
    const others = Array.from({ length: 5 }, (_, index) => new Customer(u.app, `other-${index}`));
    const work = others.map(async (other) => {
      await other.post("/subscriptions", { planId: "plan_pro" });
      for (let turn = 0; turn < 4; turn++) await other.commit(await other.hold("image.x", { prompt: "p" }));
    });
    const jobs = await Promise.all(ids.map((id) => deletePerson(u, id)));
    await Promise.all(work);
    await sweep(service);
    assert.equal(new Set(jobs).size, 10);
    for (const jobId of jobs) assert.equal((await statusOf(u, jobId)).status, "completed");
    assert.deepEqual(await tracesOf(service, MARK), {});
    assert.deepEqual(await stuck(service), []);
    for (const other of others) {
      assert.deepEqual(await other.counts("lg_images"), [4]);
      const events = await feedOf(other, `&userId=${other.userId}`);
      assert.deepEqual([events.length, events.every(({ hasLog }) => hasLog)], [4, true]);
    }
    assert.deepEqual(await driftsOf(service), []);
  });
});
