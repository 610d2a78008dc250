// Aliases for the system made of the pure domain: the pair's checks as the runtime makes them, around the merge.

import { type MergeReport, repeatedReport } from "../../src/domain/merging/merge_report.ts";
import type { StoredMerge } from "../../actors/port.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { showReport } from "../../routes/calls/customers.ts";
import type { Refusal } from "../../src/domain/values/refusal.ts";
import { STATUS } from "../../routes/http/errors.ts";
import { showDuplicates } from "../../routes/calls/shown_records.ts";
import type { DecideSystem } from "./decide_system.ts";
import type { Input, ModelReply, ModelRequest, WireData } from "../model/document.ts";

/** Answers an alias call at a moment. */
export function answerAlias(system: DecideSystem, { op, input }: ModelRequest, now: Millis): ModelReply {
  if (op === "customer") return customer(system, input, now);
  return op === "alias" ? alias(system, input, now) : batch(system, input, now);
}

function alias(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const { from, to, dryRun, consentGiven } = input as Record<string, string> & Input;
  if (from === to) return refuse("alias_cycle");
  const [canonicalFrom, canonicalTo] = [system.canonicalOf(from as string), system.canonicalOf(to as string)];
  const isAlias = canonicalFrom !== from;
  const isSame = canonicalFrom === canonicalTo;
  if (isSame && !isAlias) return refuse("alias_cycle");
  if (!isSame && isAlias) return refuse("alias_conflict");
  const isDryRun = dryRun === true as unknown;
  const call = { isDryRun, analytics: analyticsOf(input, consentGiven) };
  const report = isSame
    ? repeated(system, from as string, call, now)
    : system.merge(canonicalFrom, canonicalTo, call, now);
  if ("code" in report) return refuse(report.code);
  const data = showReport({ from: from as string, to: to as string }, report);
  return { status: 200, data: JSON.parse(JSON.stringify(data)) };
}

function analyticsOf({ from, to }: Input, consentGiven: unknown): MergeReport["analytics"] {
  const isAnonymous = [from, to].some((id) => String(id).startsWith("anon_"));
  return isAnonymous && consentGiven !== true ? "skipped_consent_required" : "linked";
}

function repeated(
  system: DecideSystem,
  from: string,
  call: { readonly isDryRun: boolean; readonly analytics: MergeReport["analytics"] },
  now: Millis,
): MergeReport {
  const { aliases } = system.stateOf(from, now);
  const key = aliases.find(({ id }) => id === from)?.key as number;
  const stored = system.tables.loadMerge(key) as StoredMerge;
  const repeated = repeatedReport({ ...stored, report: JSON.parse(stored.report) as MergeReport }, call);
  if (!call.isDryRun && repeated.analytics === "linked") system.tables.recordLink(key);
  return repeated;
}

function batch(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const { pairs, dryRun, consentGiven } = input as {
    pairs: Input[];
    dryRun?: boolean;
    consentGiven?: boolean;
  };
  const results = pairs.map(({ from, to }) => {
    const isPair = [from, to].every((id) => typeof id === "string" && id.length > 0 && [...id].length <= 200);
    const reply = isPair
      ? alias(system, { from, to, dryRun, consentGiven }, now)
      : { status: 400, code: "invalid_request" };
    if (reply.status !== 200) {
      const error = { code: reply.code, message: "" };
      return { from, to, ok: false, error, billableOperations: 0 };
    }
    const { billableOperations } = reply.data as { billableOperations: number };
    return { from, to, ok: true, report: reply.data, billableOperations };
  });
  const billableOperations = results.reduce((sum, result) => sum + result.billableOperations, 0);
  return { status: 200, data: { results, billableOperations } as WireData };
}

function customer(system: DecideSystem, input: Input, now: Millis): ModelReply {
  return system.ask(String(input["id"] ?? input["userId"]), "user", {}, now, (answer) => ({
    canonicalId: answer.userId,
    aliases: answer.aliases.map(({ id }) => id),
    duplicateActiveSubscriptions: showDuplicates(answer.duplicates),
  }));
}

function refuse(code: Refusal["code"]): ModelReply {
  return { status: STATUS[code], code };
}
