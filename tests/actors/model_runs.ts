// The independent model against the whole service, over HTTP in this process: the same workload, answer by answer.
// Between two calls actors may leave memory, sweeps may run and the process may crash: no answer may change (laws 5,
// 6 and 9 of the architecture). `model_test.ts` makes short runs, `model_long_test.ts` long ones.

import assert from "node:assert/strict";
import { passivateIdle } from "./runtime.ts";
import { catalogs } from "../model/catalogs.ts";
import { STATUS } from "../../routes/http/errors.ts";
import { isOfProvider, withProviderCall } from "../domain/provider_calls.ts";
import type { CatalogDocument, ModelReply, ModelRequest } from "../model/document.ts";
import { drive, type Outcomes, type Webhooks } from "../model/drive.ts";
import { Random } from "../model/random.ts";
import { sendOverWire } from "../model/wire.ts";
import { testServerUrl } from "../support/test_store.ts";
import { ManualClock, startTestService, type TestApp, type TestService } from "../support/test_service.ts";

const START_MS = Date.UTC(2026, 0, 31, 10, 30, 0, 250);

type CatalogName = keyof typeof catalogs;

/** What a run does between two calls. */
type Trouble = (service: TestService, app: TestApp) => Promise<void>;

/** One run of the workload. */
export interface Run {
  readonly catalog: CatalogName;
  readonly seed: number;
  readonly steps: number;
  /** What may happen before a call, with how likely it is. */
  readonly troubles?: readonly (readonly [probability: number, trouble: Trouble])[];
  readonly mode?: "live" | "test";
  readonly operationCap?: number;
  /** Whether users are merged on the way. */
  readonly merges?: boolean;
  /** Whether a payment provider mirrors subscriptions, grants and refunds. */
  readonly stripe?: boolean;
  /** Whether calls name runs. */
  readonly runs?: boolean;
  /** Whether users have parents, which change on the way. */
  readonly trees?: boolean;
  /** Whether catalogs with other prices are applied on the way. */
  readonly reprices?: boolean;
}

/** Drives a fresh service through one workload. */
export async function run(
  { catalog, seed, steps, troubles = [], mode = "live", operationCap, reprices = false, ...how }: Run,
): Promise<Outcomes> {
  const service = await startTestService(new ManualClock(START_MS));
  try {
    const caps = operationCap === undefined
      ? {}
      : { [mode === "live" ? "operationCap" : "testOperationCap"]: operationCap };
    const document = catalogs[catalog];
    const app = await service.newApp(document, caps);
    const key = mode === "live" ? app.secretLive : app.secretTest;
    const random = new Random(seed ^ 0x5eed);
    const send = async (request: ModelRequest, nowMs: number): Promise<ModelReply> => {
      service.clock.set(nowMs);
      for (const [probability, trouble] of troubles) {
        if (random.chance(probability)) await trouble(service, app);
      }
      if (isOfProvider(request.op)) return await tellActor(service, app, mode, request);
      return await sendOverWire((method, path, body) => app.call(method, path, body, { key }), request);
    };
    const webhooks = webhooksOf(service, app, mode);
    const apply = async (next: CatalogDocument) => {
      const { status } = await service.admin("PUT", `/apps/${app.appId}/catalog`, next);
      assert.equal(status, 200);
    };
    return await drive({
      catalog: document,
      seed,
      steps,
      startMs: START_MS,
      invalid: true,
      mode,
      ...how,
      send,
      webhooks,
      ...(reprices ? { apply } : {}),
      ...(operationCap === undefined ? {} : { operationCap }),
    });
  } catch (error) {
    throw new Error(`catalog "${catalog}", seed ${seed}: ${(error as Error).message}`, { cause: error });
  } finally {
    await service.close();
  }
}

/** Puts what a provider does to a user's actor, as a message that came over the wire does in the end. */
function tellActor(
  service: TestService,
  { appId }: TestApp,
  mode: "live" | "test",
  request: ModelRequest,
): Promise<ModelReply> {
  const { term, registry } = service.serving();
  const realm = registry.apps.get(appId)?.realms[mode];
  if (realm === undefined) throw new Error(`no app ${appId}`);
  return withProviderCall(request, async ({ name, input, externalRefs, show }): Promise<ModelReply> => {
    const needs = externalRefs.length === 0 ? {} : { needs: { externalRefs } };
    const userId = String(request.input["userId"]);
    const result = await term.directory.runById(userId, { realm, name, input, ...needs });
    if (result.ok) {
      return { status: 200, data: JSON.parse(JSON.stringify(show(result.answer, realm.catalog))) };
    }
    return { status: STATUS[result.refusal.code], code: result.refusal.code };
  });
}

/** The webhooks of an app: made when they first listen, and disabled while they do not. */
function webhooksOf(service: TestService, { appId }: TestApp, mode: "live" | "test"): Webhooks {
  const ids = new Map<string, string>();
  const names = new Map<string, string>();
  let last = "";
  return {
    every: 50,
    async settle(nowMs) {
      service.clock.set(nowMs);
      await sweep(service);
    },
    async listen(listeners) {
      for (const { webhookId: name, events } of listeners) {
        if (ids.has(name)) continue;
        const url = `https://${name}.test/`;
        const { body } = await service.admin("POST", `/apps/${appId}/webhooks`, { url, mode, events });
        ids.set(name, body.data.webhookId);
        names.set(body.data.webhookId, name);
      }
      for (const [name, webhookId] of ids) {
        const disabled = !listeners.some((each) => each.webhookId === name);
        const { status } = await service.admin("PATCH", `/apps/${appId}/webhooks/${webhookId}`, { disabled });
        assert.equal(status, 200);
      }
    },
    async recorded() {
      await service.serving().term.flush();
      const rows = await service.store.database.query<{ id: string; webhook: string; body: string }>(
        `select id, webhook_id as webhook, body from webhook_messages
         where webhook_id = any(string_to_array($1, ',')) and id > $2 order by id`,
        [[...names.keys()].join(), last],
      );
      last = rows.at(-1)?.id ?? last;
      return rows.map(({ webhook, body }) => ({
        webhookId: names.get(webhook) as string,
        ...JSON.parse(body),
      }));
    },
  };
}

/** The same run over each catalog: one after another, but side by side on a server, whose commits overlap. */
export async function runAll(options: Omit<Run, "catalog">): Promise<Outcomes> {
  const all: Outcomes = new Map();
  const names = Object.keys(catalogs) as CatalogName[];
  const lanes = testServerUrl() === null ? [names] : names.map((name) => [name]);
  await Promise.all(lanes.map(async (lane) => {
    for (const catalog of lane) {
      for (const [outcome, times] of await run({ ...options, catalog })) {
        all.set(outcome, (all.get(outcome) ?? 0) + times);
      }
    }
  }));
  return all;
}

/** Lets every actor go; all of them are idle once the tables have what they decided. */
export async function passivate({ serving }: TestService): Promise<void> {
  const { term } = serving();
  await term.flush();
  passivateIdle(term.directory);
  assert.equal(term.directory.size, 0);
}

/** Settles what is due of idle users. */
export async function sweep(service: TestService): Promise<void> {
  const { status } = await service.admin("POST", "/sweep");
  assert.equal(status, 200);
}

/** Ends the term without a drain; what was acknowledged is in the journal alone. */
export function crash(service: TestService): Promise<void> {
  return service.restart();
}

/** Fails unless each of these outcomes was met. */
export function assertMet(outcomes: Outcomes, ...wanted: readonly string[]): void {
  assert.deepEqual(wanted.filter((outcome) => !outcomes.get(outcome)), []);
}
