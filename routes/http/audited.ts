// Writes by people go into the audit log, from the admin API and from the console.

import {
  type AuditedAction,
  type AuditWorld,
  type Author,
  beginAudited,
  type Ending,
  type Values,
} from "../../src/audit/audit.ts";
import { AUDIT_VALUES, type AuditedWorld } from "./audit_values.ts";
import { type Handled, valueOf } from "./answer.ts";
import type { DispatchWorld, KeylessCall, Origin, Outcome } from "./call.ts";
import { dispatch } from "./dispatch.ts";
import type { KeylessEndpoint } from "./endpoint_types.ts";
import { Refused } from "./errors.ts";
import { type Caller, isOperated } from "../../src/tenant/registry.ts";

/** Codes of answers that leave open whether the write was made. */
export const UNCERTAIN: ReadonlySet<string> = new Set(["unavailable", "internal_error"]);

/** The values that the log keeps of a write that succeeded. */
interface LoggedValues {
  readonly before: Values | null;
  readonly after: (data: Values) => Values | null;
}

/** Makes a write and logs it. The answer is returned when the log has it. */
export async function audited(
  world: AuditWorld,
  action: AuditedAction,
  { before, after }: LoggedValues,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const end = await beginAudited(world, action);
  let outcome: Outcome;
  try {
    outcome = await run();
  } catch (error) {
    await end({ kind: error instanceof Refused ? "refused" : "unknown" });
    throw error;
  }
  await end(endingOf(outcome, before, after));
  return outcome;
}

/** Makes a write of an API key and logs it, unless an operator of the console makes it: the console logs its own writes. */
export async function auditedByKey<Data>(
  world: AuditWorld,
  caller: Caller,
  { what, userId }: Pick<AuditedAction, "what" | "userId">,
  after: (data: Values) => Values,
  run: () => Promise<Handled<Data>>,
): Promise<Handled<Data>> {
  if (isOperated(caller)) return await run();
  const { app, key, realm: { mode } } = caller;
  const action = { who: key.keyId, via: "api", what, appId: app.record.appId, mode, userId } as const;
  return await audited(world, action, { before: null, after }, run) as Handled<Data>;
}

function endingOf(outcome: Outcome, before: Values | null, after: LoggedValues["after"]): Ending {
  if (outcome instanceof Response) return { kind: "done", appId: null, before, after: null };
  // The first call has its entry.
  if ("body" in outcome && outcome.isReplayed === true) return { kind: "refused" };
  const answer = valueOf(outcome);
  if (!answer.ok) return { kind: UNCERTAIN.has(answer.error.code) ? "unknown" : "refused" };
  const data = (answer.data ?? {}) as Values;
  const appId = typeof data["appId"] === "string" ? data["appId"] : null;
  return { kind: "done", appId, before, after: after(data) };
}

/** Whether a call of the admin API writes. */
export function isWrite({ id, method, access }: KeylessEndpoint<never>, input: unknown): boolean {
  return access === "admin" && method !== "GET" && AUDIT_VALUES[id]?.isWrite?.(input as Values) !== false;
}

/** Runs a call of the admin API where it belongs, and logs it if it writes. */
export async function dispatchAudited<World extends DispatchWorld & AuditWorld & AuditedWorld>(
  world: World,
  call: KeylessCall<World>,
  origin: Origin,
  author: Author,
): Promise<Outcome> {
  const { target } = call;
  if (!isWrite(target, call.input)) return await dispatch(world, call, origin);
  const who = author.via === "console" ? author.who : "api";
  const run = () => dispatch(world, { ...call, who }, origin);
  const about = target.about?.({ world, input: call.input }) ?? null;
  const appId = about !== null && "appId" in about ? about.appId : null;
  const values = AUDIT_VALUES[target.id];
  const input = (call.input ?? {}) as Values;
  const before = values?.before?.(world.registry, input) ?? null;
  const after = (data: Values) => values?.after(input, data) ?? null;
  const action = { ...author, what: target.id, appId, mode: null, userId: null };
  return await audited(world, action, { before, after }, run);
}
