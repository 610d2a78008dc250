// Writes that people make go into the audit log, whether they come by the admin API or by the console. beyond.md,
// section 8, "Audit".

import {
  type Actor,
  type AuditWorld,
  beginDeed,
  type Deed,
  type Ending,
  type Values,
} from "../../src/audit/audit.ts";
import { AUDIT_VALUES, type AuditedWorld } from "./audit_values.ts";
import { readAnswer, type WrittenAnswer } from "./answer.ts";
import type { KeylessEndpoint } from "./endpoint_types.ts";
import { Refused } from "./errors.ts";
import { type KeylessCall, type KeylessWorld, runKeylessAnywhere } from "./run_keyless.ts";

/** Codes of answers after which nobody can say whether the write was made. */
export const UNCERTAIN: ReadonlySet<string> = new Set(["unavailable", "internal_error"]);

/** What the log keeps of a write that succeeded. */
export interface Told {
  readonly before: Values | null;
  readonly after: (data: Values) => Values | null;
}

/** Makes a write that goes into the audit log. The answer leaves when the log has it. */
export async function audited<Given extends WrittenAnswer | Response>(
  world: AuditWorld,
  deed: Deed,
  { before, after }: Told,
  run: () => Promise<Given>,
): Promise<Given> {
  const end = await beginDeed(world, deed);
  let given: Given;
  try {
    given = await run();
  } catch (error) {
    await end({ kind: error instanceof Refused ? "refused" : "unknown" });
    throw error;
  }
  await end(endingOf(given, before, after));
  return given;
}

function endingOf(given: WrittenAnswer | Response, before: Values | null, after: Told["after"]): Ending {
  if (given instanceof Response) return { kind: "done", appId: null, before, after: null };
  // The first call has its entry.
  if (given.isReplayed === true) return { kind: "refused" };
  const answer = readAnswer(given);
  if (!answer.ok) return { kind: UNCERTAIN.has(answer.error.code) ? "unknown" : "refused" };
  const data = (answer.data ?? {}) as Values;
  const appId = typeof data["appId"] === "string" ? data["appId"] : null;
  return { kind: "done", appId, before, after: after(data) };
}

/** Whether a call to the admin API writes anything. */
export function isWrite({ id, method, access }: KeylessEndpoint<never>, input: unknown): boolean {
  return access === "admin" && method !== "GET" && AUDIT_VALUES[id]?.isWrite?.(input as Values) !== false;
}

/** Runs a call to the admin API where it belongs; one that writes goes into the audit log. */
export async function runKeylessAudited<World extends KeylessWorld & AuditWorld & AuditedWorld>(
  world: World,
  call: KeylessCall<World>,
  request: Request,
  actor: Actor,
): Promise<WrittenAnswer | Response> {
  const { endpoint } = call;
  const run = () => runKeylessAnywhere(world, call, request);
  if (!isWrite(endpoint, call.input)) return await run();
  const about = endpoint.about?.({ world, input: call.input }) ?? null;
  const appId = about !== null && "appId" in about ? about.appId : null;
  const values = AUDIT_VALUES[endpoint.id];
  const input = (call.input ?? {}) as Values;
  const before = values?.before?.(world.registry, input) ?? null;
  const after = (data: Values) => values?.after(input, data) ?? null;
  const deed = { ...actor, what: endpoint.id, appId, mode: null, userId: null };
  return await audited(world, deed, { before, after }, run);
}
