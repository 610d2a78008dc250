// A tour through every operation on the example catalog: what is sent and what is answered becomes the examples of the
// API reference. The clock stands and ids are counted, so that two tours are equal to the letter; what is secret or
// random is replaced by a text of its form.

import assert from "node:assert/strict";
import type { RefusalCode } from "../../../src/domain/values/refusal.ts";
import type { IdSource } from "../../../src/domain/values/ids.ts";
import type { Example, Recorded } from "../../../routes/reference/examples.ts";
import { makeIdSource } from "../../../src/process/id_source.ts";
import { serve } from "../../tasks/support.ts";
import { endUserToken } from "../support.ts";
import { DOCUMENTED } from "../../support/documented.ts";
import { ModelServer } from "../../support/model_server.ts";
import {
  ADMIN_TOKEN,
  type Answer,
  ManualClock,
  send,
  startTestService,
  type TestApp,
  type TestService,
} from "../../support/test_service.ts";
import { walkAdministration, walkPrivacy, walkProduct } from "./walk.ts";

/** How one call of the tour is made. */
interface CallOf {
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Default: the live secret key; null for none. */
  readonly key?: string | null;
  readonly headers?: Record<string, string>;
}

/** A tour under way. */
export interface Tour {
  readonly service: TestService;
  readonly app: TestApp;
  /** Calls an endpoint, which must succeed, and keeps it as its example. */
  // deno-lint-ignore no-explicit-any -- a tour looks at whatever came back
  record(id: string, call?: CallOf): Promise<any>;
  /** Calls an operation that must refuse with a code, and keeps the answer. */
  refuse(id: string, code: RefusalCode, call?: CallOf): Promise<void>;
  token(userId: string): string;
  /** Where webhooks may point: it takes every message. */
  readonly receiverUrl: string;
}

const UNIQUE_LENGTH = 6;

/** Ids as the program makes them, without the part that is random. */
function countedIds(clock: ManualClock): IdSource {
  const ids = makeIdSource(clock);
  const settled = (id: string) => id.slice(0, -UNIQUE_LENGTH) + "0".repeat(UNIQUE_LENGTH);
  return {
    next: (kind) => settled(ids.next(kind)),
    nextOwned: (kind, owner) => settled(ids.nextOwned(kind, owner)),
  };
}

/** Makes the whole tour on a fresh service; answers what was recorded, by operation. */
export async function makeTour(start = startTestService): Promise<Record<string, Recorded>> {
  const clock = new ManualClock();
  const models = new ModelServer();
  const modelServer = { apiKey: "sk-model-example", baseUrl: models.baseUrl };
  const receiver = serve(() => new Response(null, { status: 204 }));
  const keys = new Map<string, string>();
  const stripe = { byMode: { live: keys, test: keys }, base: "http://127.0.0.1:9" };
  const features = { modelServer, allowsPrivateWebhooks: true, stripe };
  const service = await start(clock, features, countedIds(clock));
  try {
    const recorded = new Map<string, { success?: Example; refusals?: Record<string, unknown> }>();
    const app = await service.newApp();
    keys.set(app.appId, "sk_live_example");
    const tour = tourOf(service, app, receiver.url, recorded);
    await walkProduct(tour);
    await walkPrivacy(tour);
    await walkAdministration(tour);
    const text = JSON.stringify(inOrder(recorded)).replaceAll(receiver.url, "https://example.com")
      .replaceAll(new URL(receiver.url).host, "example.com");
    return JSON.parse(withoutSecrets(text, app));
  } finally {
    await service.close();
    await receiver.close();
    await models.close();
  }
}

function tourOf(
  service: TestService,
  app: TestApp,
  receiverUrl: string,
  recorded: Map<string, { success?: Example; refusals?: Record<string, unknown> }>,
): Tour {
  const kept = (id: string) => {
    const known = recorded.get(id) ?? {};
    recorded.set(id, known);
    return known;
  };
  return {
    service,
    app,
    receiverUrl,
    async record(id, call = {}) {
      const { status, body } = await sendTo(service, app, id, call);
      assert.equal(status, 200, `${id}: ${JSON.stringify(body)}`);
      const { parameters, body: sent } = call;
      kept(id).success = {
        ...parameters === undefined ? {} : { parameters },
        ...sent === undefined ? {} : { body: sent },
        answer: body,
      };
      return body.data ?? body;
    },
    async refuse(id, code, call = {}) {
      const { body } = await sendTo(service, app, id, call);
      assert.equal(body.error?.code, code, `${id}: ${JSON.stringify(body)}`);
      (kept(id).refusals ??= {})[code] = body;
    },
    token: (userId) => {
      const exp = Math.floor(service.clock.now() / 1000) + 3600;
      return endUserToken(app.identitySecret, { userId, exp });
    },
  };
}

async function sendTo(service: TestService, app: TestApp, id: string, call: CallOf): Promise<Answer> {
  const stop = DOCUMENTED.find((one) => one.id === id);
  assert.ok(stop !== undefined, `No operation is called ${id}`);
  const { parameters = {}, body, headers = {} } = call;
  const isAdmin = stop.path.startsWith("/api/admin/");
  const key = call.key === null ? undefined : call.key ?? (isAdmin ? ADMIN_TOKEN : app.secretLive);
  const query = new URLSearchParams(parameters);
  const path = stop.path.replace(/:(\w+)/g, (_, name: string) => {
    query.delete(name);
    return encodeURIComponent(parameters[name] ?? "");
  });
  const options = key === undefined ? { headers } : { key, headers };
  return await send(service.http, stop.method, query.size === 0 ? path : `${path}?${query}`, body, options);
}

function inOrder(recorded: ReadonlyMap<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(DOCUMENTED.map(({ id }) => [id, recorded.get(id)]));
}

/** Keys, secrets and signed tokens differ from run to run, and have no place in a document. */
function withoutSecrets(text: string, app: TestApp): string {
  return text
    .replaceAll(app.identitySecret, "EXAMPLE_IDENTITY_SECRET")
    .replace(/"identitySecret":"[^"]*"/g, '"identitySecret":"EXAMPLE_IDENTITY_SECRET"')
    .replace(/"whsec_[^"]*"/g, '"whsec_EXAMPLE"')
    .replace(/"([sp]k_(?:live|test)_)[0-9A-Za-z]{40}"/g, '"$1EXAMPLE"')
    .replace(/"(uk_(?:live|test)_)[0-9A-Za-z]{32}_[0-9a-z_]*"/g, '"$1EXAMPLE"')
    .replace(/"keyPrefix":"([spu]k_(?:live|test)_)[0-9A-Za-z]*"/g, '"keyPrefix":"$1EXAM"')
    .replace(/"keyPrefix":"[0-9a-v]{12}\."/g, '"keyPrefix":"EXAMPLE."')
    .replace(/"prefix":"([spu]k_(?:live|test)_)[0-9A-Za-z]*"/g, '"prefix":"$1EXAM"')
    .replace(/[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{43}/g, "EXAMPLE_TOKEN");
}
