// Drives one workload against a system at any altitude: sends each request, shows the answer to the
// model, and stops at the first difference with all that is needed to see it again. The sender alone
// knows how a request reaches the system.

import { realerted, repriced } from "./catalogs.ts";
import type { CatalogDocument, ModelReply, ModelRequest } from "./document.ts";
import { compareWithDryRun } from "./compare.ts";
import type { Listener, Recorded } from "./messages.ts";
import { compare, Model } from "./model.ts";
import { Random } from "./random.ts";
import { listOf } from "./workload_credits.ts";
import { Workload } from "./workload.ts";

export interface DriveOptions {
  catalog: CatalogDocument;
  seed: number;
  steps: number;
  users?: number;
  startMs?: number;
  invalid?: boolean;
  merges?: boolean;
  stripe?: boolean;
  runs?: boolean;
  trees?: boolean;
  mode?: "live" | "test";
  operationCap?: number | null;
  testCreditBalanceCap?: number | null;
  /** Puts a catalog of other prices in force, now and then; without it prices stay. */
  apply?: (catalog: CatalogDocument) => void | Promise<void>;
  /** Whether the run may end before its last step, by what it has met. */
  isEnough?: (isMet: (outcome: string) => boolean) => boolean;
  /** Who listens changes now and then; with `apply` also alerts, quotas and what is little. */
  webhooks?: Webhooks;
  /** Sets the system's clock to `nowMs`, sends the request, and reads the answer (`replyFromWire`). */
  send: (request: ModelRequest, nowMs: number) => ModelReply | Promise<ModelReply>;
}

/** How a system's webhooks are driven. */
export interface Webhooks {
  /** Settles what is due at a moment, of every user. */
  settle(nowMs: number): void | Promise<void>;
  /** These take messages from now on. */
  listen(listeners: Listener[]): void | Promise<void>;
  /** The messages that were recorded since it was last asked, in their order. */
  recorded(): Recorded[] | Promise<Recorded[]>;
  /** How many steps lie between two looks at them. */
  every: number;
}

/** All listeners that a run may have. */
const LISTENERS: readonly Listener[] = [
  { webhookId: "all", events: ["*"] },
  { webhookId: "usage", events: ["usage.*", "reservation.expired"] },
  { webhookId: "credits", events: ["credits.low", "credits.depleted", "credits.expired", "user.*"] },
  { webhookId: "plans", events: ["subscription.*", "credits.granted", "user.merged"] },
];

/** How often each outcome was seen, by `op` and by parts of the answer; with the cases of the model. */
export type Outcomes = Map<string, number>;

const STEPS_A_CATALOG = 40;

/** Runs the whole workload; throws at the first difference. */
export async function drive(options: DriveOptions): Promise<Outcomes> {
  const workload = new Workload(options);
  const model = new Model(options.catalog, options);
  const outcomes: Outcomes = new Map();
  const recent: (Sent & { index: number })[] = [];
  const prices = new Random(options.seed);
  const { webhooks } = options;
  const ears = new Random(options.seed ^ 0xea45);
  let catalog = options.catalog;
  const listen = async (listeners: Listener[]) => {
    await webhooks?.listen(listeners);
    model.listen(listeners);
  };
  await listen([...LISTENERS]);
  const isMet = (outcome: string) => outcomes.has(outcome) || model.cases.has(outcome);
  let before: Sent | null = null;
  let isLast = false;
  for (let n = 0; !isLast; n++) {
    isLast = n >= options.steps - 1 || options.isEnough?.(isMet) === true;
    if (n % STEPS_A_CATALOG === STEPS_A_CATALOG - 1) {
      // What fell due is of the catalog and the listeners until now.
      await webhooks?.settle(workload.nowMs);
      model.settle(workload.nowMs);
      if (options.apply) {
        if (webhooks) catalog = realerted(options.catalog, ears);
        catalog = repriced({ ...catalog, models: options.catalog.models ?? [] }, prices);
        await options.apply(catalog);
        model.apply(catalog);
      }
      const nobody = ears.chance(0.2);
      if (webhooks) await listen(LISTENERS.filter(() => !nobody && ears.chance(0.75)));
    }
    const step = workload.next();
    const { request, index } = step;
    const now = workload.nowMs;
    const observed = await options.send(structuredClone(request), now);
    const predicted = model.handle(request, now, observed);
    const differences = compare(predicted, observed);
    const sent: Sent = { request, now, observed };
    if (before && isRealRunOf(before, sent)) {
      differences.push(...compareWithDryRun(before.observed, observed));
      outcomes.set("alias after its dry run", (outcomes.get("alias after its dry run") ?? 0) + 1);
    }
    before = sent;
    if (request.op === "canUse") {
      const why: ModelRequest = { op: "explain", input: request.input };
      const said = await options.send(structuredClone(why), now);
      differences.push(...compare(model.handle(why, now, said), said).map((each) => `explain: ${each}`));
      differences.push(...disagreements(observed, said));
    }
    const tighter = webhooks && differences.length === 0 ? tighterLimits(request, observed, ears) : null;
    if (tighter) {
      const said = await options.send(structuredClone(tighter), now);
      differences.push(...compare(model.handle(tighter, now, said), said).map((each) => `tighter: ${each}`));
    }
    if (isLast) {
      await webhooks?.settle(now);
      model.settle(now);
    }
    if (webhooks && (isLast || n % webhooks.every === 0)) {
      differences.push(...model.take(await webhooks.recorded()), ...isLast ? model.missing(now) : []);
    }
    recent.push({ index, request, now, observed });
    if (recent.length > 30) recent.shift();
    if (differences.length > 0) {
      const head = `seed ${options.seed}, step ${index} (${request.op}): the system and the model differ`;
      throw new Error(
        [
          head,
          ...differences,
          `predicted: ${JSON.stringify(predicted)}`,
          "last steps:",
          ...recent.map(lineOf),
        ].join("\n"),
      );
    }
    workload.observe(step, observed);
    for (const outcome of outcomesOf(request, observed)) {
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  }
  for (const [name, times] of model.cases) outcomes.set(name, times);
  return outcomes;
}

/** Drives runs one after another until all of these outcomes are met; returns those that no run met. */
export async function unmetBy(runs: Iterable<DriveOptions>, wanted: readonly string[]): Promise<string[]> {
  const missing = new Set(wanted);
  const isEnough: DriveOptions["isEnough"] = (isMet) => {
    for (const outcome of missing) if (isMet(outcome)) missing.delete(outcome);
    return missing.size === 0;
  };
  for (const run of runs) {
    const outcomes = await drive({ ...run, isEnough });
    if (isEnough((outcome) => outcomes.has(outcome))) break;
  }
  return [...missing];
}

/** The differences between an explain and the can-use right before it. */
function disagreements(can: ModelReply, why: ModelReply): string[] {
  return (["allowed", "matched", "reasons", "refusedBy"] as const).flatMap((name) => {
    const [told, explained] = [can.data?.[name], why.data?.[name]].map((value) => JSON.stringify(value));
    return told === explained ? [] : [`explain: ${name} is ${explained}, and can-use says ${told}`];
  });
}

/** Half of the users that are shown get a custom limit near what they have used, which may be at a threshold then. */
function tighterLimits({ op }: ModelRequest, { data = {} }: ModelReply, random: Random): ModelRequest | null {
  const row = data["subscription"] as Record<"planId" | "provider" | "externalId" | "endsAt", string | null>;
  const counters = (data["counters"] ?? []) as { groupId: string; count: number; quota: number }[];
  const used = counters.filter(({ count, quota }) => count > 0 && count < quota);
  if (op !== "users" || !row || used.length === 0 || random.chance(0.5)) return null;
  const { groupId, count } = random.pick(used);
  const quota = Math.round(count * random.pick([1, 1.25, 2]) * 1e6) / 1e6;
  const { planId, provider, externalId, endsAt } = row;
  const { userId } = data;
  const input = { userId, planId, provider, externalId, endsAt, customLimits: { [groupId]: { quota } } };
  return { op: "subscribe", input };
}

interface Sent {
  request: ModelRequest;
  now: number;
  observed: ModelReply;
}

function lineOf({ index, request, now, observed }: Sent & { index: number }): string {
  return `${index} ${new Date(now).toISOString()} ${JSON.stringify(request)} -> ${JSON.stringify(observed)}`;
}

/** Whether two calls are a dry run and its real run, at the same moment. */
function isRealRunOf(dry: Sent, real: Sent): boolean {
  if (dry.request.op !== "alias" || real.request.op !== "alias" || dry.now !== real.now) return false;
  const [a, b] = [dry.request.input, real.request.input];
  return a["dryRun"] === true && b["dryRun"] !== true &&
    ["from", "to", "consentGiven"].every((name) => a[name] === b[name]);
}

function outcomesOf({ op }: ModelRequest, { status, code, data = {} }: ModelReply): string[] {
  const found = [`${op} ${code ?? status}`];
  const note = (word: unknown) => found.push(`${op} ${word}`);
  for (const reason of (data["reasons"] ?? []) as string[]) note(reason);
  if (data["recharged"] === true) note("recharged");
  for (const warning of (data["warnings"] ?? []) as string[]) note(warning);
  if (data["matchStatus"] !== undefined) note(data["matchStatus"]);
  const groups = (data["groups"] ?? []) as { overflow?: boolean }[];
  if (groups.some((group) => group.overflow)) note("overflow");
  for (const row of (data["history"] ?? []) as { type: string }[]) note(row.type);
  for (const row of listOf(data["entries"]) as { reason: string }[]) note(row.reason);
  for (const row of listOf(data["credits"]) as { status: string }[]) note(row.status);
  if (typeof data["nextCursor"] === "string") note("nextCursor");
  if (data["duplicateActiveSubscriptions"]) note("duplicates");
  if (data["alreadyMerged"] === false && data["dryRun"] === false) note("merged");
  if (data["analytics"] !== undefined) note(data["analytics"]);
  for (const each of (data["results"] ?? []) as { error?: { code: string } }[]) {
    note(each.error?.code ?? "ok");
  }
  return found;
}
