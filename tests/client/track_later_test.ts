// Events that are sent later: collected, cut, sent in order and once, and never lost in silence.

import assert from "node:assert/strict";
import { createClient, HoldfastError, type LaterEvent, TrackError } from "../../src/client/client.ts";
import { TrackLater } from "../../src/client/track_later.ts";
import { Transport } from "../../src/client/transport.ts";
import { appWithUser, countOf, serviceOfFile } from "../routes/support.ts";
import { BASE_URL, breakOff, clientOf, fail, fetchOf, type Sent, sentOf } from "./support.ts";

const service = serviceOfFile();

interface SentEvent {
  readonly userId: string;
  readonly quantity?: number;
  readonly idempotencyKey: string;
}

function eventsOf({ body }: Sent): SentEvent[] {
  return JSON.parse(body ?? "").events;
}

/** A queue on a fetch that answers each event by a function of it and of how often it came before. */
function laterOf(answer: (event: SentEvent, tries: number) => unknown, onError = false) {
  const sent: Sent[] = [];
  const seen = new Map<string, number>();
  const told: [string, LaterEvent][] = [];
  const fetch = (url: string, init: RequestInit) => {
    const request = sentOf(url, init);
    sent.push(request);
    const results = eventsOf(request).map((event) => {
      const tries = seen.get(event.idempotencyKey) ?? 0;
      seen.set(event.idempotencyKey, tries + 1);
      return answer(event, tries);
    });
    return Promise.resolve(Response.json({ ok: true, data: { results } }));
  };
  const transport = new Transport(
    { apiKey: "sk_live_x", baseUrl: BASE_URL, fetch },
    () => Promise.resolve(),
  );
  const later = new TrackLater(transport, onError ? (error, event) => told.push([error.code, event]) : null);
  return { later, sent, told };
}

const counted = () => ({ ok: true, data: {} });
const refused = (code: string) => ({ ok: false, error: { code, message: code } });

Deno.test("events leave in their order, at most a hundred in a batch, each with a key of its own", async () => {
  const { later, sent } = laterOf(counted);
  for (let quantity = 1; quantity <= 250; quantity++) later.add({ userId: "u", event: "e", quantity });
  await later.flush();
  const batches = sent.map(eventsOf);
  assert.deepEqual(batches.map((events) => events.length), [100, 100, 50]);
  const events = batches.flat();
  assert.deepEqual(events.map(({ quantity }) => quantity), events.map((_, place) => place + 1));
  assert.equal(new Set(events.map(({ idempotencyKey }) => idempotencyKey)).size, 250);
});

Deno.test("a batch is cut by its bytes too, and one event that is larger goes alone", async () => {
  const { later, sent } = laterOf(counted);
  const prompt = "x".repeat(1_500_000);
  for (let number = 0; number < 5; number++) later.add({ userId: "u", event: "e", prompt });
  later.add({ userId: "u", event: "e", prompt: prompt.repeat(4) });
  await later.flush();
  assert.deepEqual(sent.map((request) => eventsOf(request).length), [2, 2, 1, 1]);
});

Deno.test("an event that is refused is reported once: to the handler, else by flush", async () => {
  const answer = ({ userId }: SentEvent) => userId === "full" ? refused("limit_reached") : counted();
  const full: LaterEvent = { userId: "full", event: "e", quantity: 3, metadata: undefined };
  for (const hasHandler of [true, false]) {
    const { later, told } = laterOf(answer, hasHandler);
    later.add({ userId: "u", event: "e" });
    later.add(full);
    const flushed = await later.flush().then(() => null, (error) => error);
    if (hasHandler) assert.deepEqual([flushed, told], [null, [["limit_reached", full]]]);
    else {
      assert.ok(flushed instanceof AggregateError);
      const [error] = flushed.errors as [TrackError];
      assert.ok(error instanceof TrackError && error.cause instanceof HoldfastError);
      assert.deepEqual([flushed.errors.length, error.event, error.cause.code], [1, full, "limit_reached"]);
    }
    await later.flush();
  }
});

Deno.test("an event that the service could not take is sent again under its key, and told when that does not end", async () => {
  const { later, sent, told } = laterOf(
    ({ userId }, tries) => userId === "never" || tries < 2 ? refused("unavailable") : counted(),
    true,
  );
  later.add({ userId: "soon", event: "e" });
  later.add({ userId: "never", event: "e" });
  await later.flush();
  const keys = sent.flatMap(eventsOf).map(({ userId, idempotencyKey }) => `${userId} ${idempotencyKey}`);
  assert.equal(new Set(keys).size, 2);
  assert.deepEqual([keys.filter((key) => key.startsWith("soon")).length, told.length], [3, 1]);
  assert.equal(told[0]?.[1].userId, "never");
});

Deno.test("a batch that was never sent is reported event by event", async () => {
  const errors: string[] = [];
  const client = createClient({
    apiKey: "sk_live_x",
    baseUrl: BASE_URL,
    fetch: () => Promise.resolve(fail(403, "forbidden")()),
    onTrackError: (error, { userId }) => errors.push(`${userId} ${error.code}`),
  });
  client.trackLater("a", "e");
  client.trackLater("b", "e");
  await client.flush();
  assert.deepEqual(errors, ["a forbidden", "b forbidden"]);
});

Deno.test("input that cannot be sent is refused at once", () => {
  const { later } = laterOf(counted);
  assert.throws(() => later.add({ userId: "u", event: "e", quantity: NaN }), HoldfastError);
});

Deno.test("an answer that was lost makes no event count twice", async () => {
  const app = await appWithUser(service);
  let tries = 0;
  const send = fetchOf(service);
  const client = clientOf(service, app, {
    retries: { maxRetries: 2, baseDelayMs: 1, maxDelayMs: 1 },
    fetch: async (url, init) => {
      const answer = await send(url, init);
      return tries++ === 0 ? breakOff() : answer;
    },
  });
  for (let count = 0; count < 10; count++) client.trackLater("u", "image.x");
  await client.flush();
  assert.equal(await countOf(app, "lg_images"), 10);
  assert.equal(tries, 2);
});

Deno.test("at the end of a process the rest is sent, and what was refused goes to the console", async () => {
  const bodies: string[] = [];
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    bodies.push(await request.text());
    return Response.json({ ok: true, data: { results: [counted(), refused("limit_reached")] } });
  });
  const client = new URL("../../src/client/client.ts", import.meta.url).href;
  const script = `import { createClient } from ${JSON.stringify(client)};
    const client = createClient({ apiKey: "sk_live_x", baseUrl: "http://127.0.0.1:${server.addr.port}" });
    client.trackLater("u", "one");
    client.trackLater("u", "two");`;
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-lock", "--ext=ts", script],
  }).output();
  assert.ok(success);
  const [body, ...more] = bodies;
  assert.deepEqual(JSON.parse(body ?? "").events.map(({ event }: { event: string }) => event), [
    "one",
    "two",
  ]);
  assert.deepEqual(more, []);
  assert.match(new TextDecoder().decode(stderr), /not counted: two of u: limit_reached/);
});
