// The registry: after a change was answered, it is in force for every call that is sent later, at any node. A revoked key is unknown, a plan is on offer, a cap refuses or lets through.

import { type Attempt, type Call, isFinal } from "../history.ts";
import { markersOf } from "../canary.ts";
import type { Checker } from "../watch.ts";

/** Looks at every call of the canaries. */
export function registryChecker(): Checker {
  return {
    name: "registry",
    atEnd({ calls }) {
      const canaries = calls.filter(({ tenant }) => tenant.isCanary);
      for (const call of canaries) {
        for (const attempt of call.attempts) {
          if (attempt.reply === null || !isFinal(attempt.reply)) continue;
          if (isWithKey(call)) checkKey(canaries, call, attempt);
          if (attempt.reply.status === 401) continue;
          if (call.request.op === "plans") checkPlans(canaries, call, attempt);
          if (call.request.op === "track" && !attempt.reply.isReplayed) checkCap(canaries, call, attempt);
        }
      }
    },
  };
}

const CHANGES: ReadonlySet<string> = new Set([
  "applyCatalog",
  "promoteCatalog",
  "setCap",
  "createKey",
  "revokeKey",
]);

function isWithKey({ request: { op } }: Call): boolean {
  return !CHANGES.has(op);
}

/** Whether a call was answered before a sending. */
function isToldBefore({ answer, answeredAt }: Call, { sentAt }: Attempt): boolean {
  return answer?.status === 200 && answeredAt !== null && answeredAt < sentAt;
}

function checkKey(calls: readonly Call[], { no, bearer }: Call, attempt: Attempt): void {
  // The revocation's own client names the key by the bearer that it brings.
  const revocations = calls.filter((call) => call.request.op === "revokeKey" && call.bearer === bearer);
  const isUnknown = attempt.reply?.status === 401;
  const before = revocations.find((call) => isToldBefore(call, attempt));
  if (!isUnknown && before !== undefined) {
    throw new Error(`call ${no} was let in with a key that call ${before.no} had revoked`);
  }
  const isRevoked = revocations.some(({ calledAt }) => calledAt < (attempt.repliedAt ?? Infinity));
  if (isUnknown && !isRevoked) throw new Error(`call ${no} was refused with a key that was not revoked`);
}

function checkPlans(calls: readonly Call[], { no }: Call, attempt: Attempt): void {
  const markers = markersOf(attempt.reply?.model.data ?? {});
  const changes = calls.filter(({ request: { op } }) => op === "applyCatalog");
  for (const change of changes) {
    if (markersOf(change.request.input) <= markers || !isToldBefore(change, attempt)) continue;
    throw new Error(`call ${no} saw the catalog without the plan that call ${change.no} had added`);
  }
  const isAdded = changes.some(({ calledAt, request: { input } }) =>
    markersOf(input) >= markers && calledAt < (attempt.repliedAt ?? Infinity)
  );
  if (markers > 0 && !isAdded) throw new Error(`call ${no} saw a plan that was not added`);
}

/** A cap that was set is the cap, where no earlier change that set another one can still arrive. */
function checkCap(calls: readonly Call[], { no, tenant }: Call, attempt: Attempt): void {
  const changes = calls.filter((call) => call.request.op === "setCap" && call.tenant === tenant);
  const place = changes.findLastIndex(({ calledAt }) => calledAt < (attempt.repliedAt ?? Infinity));
  const last = changes[place];
  const isRefused = attempt.reply?.model.code === "workspace_limit_reached";
  if (last === undefined) {
    if (isRefused) throw new Error(`call ${no} was refused at a cap that was not set`);
    return;
  }
  if (!isToldBefore(last, attempt) || !changes.slice(0, place).every((call) => isOver(call, last))) return;
  const isShut = last.request.input["operationCap"] === 0;
  if (isShut !== isRefused) {
    throw new Error(`call ${no} did not run under the cap that call ${last.no} had set`);
  }
}

/** Whether everything that came of a call was over when another began. */
function isOver({ attempts }: Call, { calledAt }: Call): boolean {
  return attempts.every(({ reply, repliedAt }) =>
    reply !== null && isFinal(reply) && repliedAt !== null && repliedAt < calledAt
  );
}
