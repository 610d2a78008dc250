// Members that the metering calls do not have: a mistaken amount is refused, any other is answered with a warning.

import type { Input, ModelReply, ModelRequest } from "./document.ts";

const ASKED = ["userId", "event", "metadata", "quantity", "count", "inputTokens", "inputCostCents", "runId"];
/** What a hold has beside them. */
const HELD = ["maxOutputTokens", "cacheWriteTokens", "cacheWrite1hTokens"];
const KNOWN: Partial<Record<ModelRequest["op"], string[]>> = {
  reserve: [...ASKED, ...HELD, "ttlSeconds", "prompt"],
  canUse: [...ASKED, ...HELD],
  explain: [...ASKED, ...HELD],
  track: [...ASKED, "costCents", "usage", "providerUsage", "prompt", "response"],
  // The user of a reservation may be named again.
  commit: ["reservationId", "userId", "extra", "actual", "costCents", "usage", "providerUsage", "response"],
  release: ["reservationId", "userId", "reason", "errorCode", "response"],
};

/** Words for an amount, a user, a model or a time to live, in any case and with any underscores. */
const MISTAKES = new RegExp(
  `^(${
    [
      "(end)?userid|customerid",
      "model(id|name)?",
      "ttl(seconds|ms)?|expiresin",
      "count|amount|units|n|images|quantity|qty|calls",
      "seconds|duration(seconds)?",
      "(total|input|prompt|output|completion|cachedinput|cachewrite(1h)?|reasoning|max|maxoutput|maxcompletion)?tokens",
      "cents|price|(input|output)?cost(cents)?",
      "usage|providerusage|extra|actual",
    ].join("|")
  })$`,
);

/** Another call's members that change no amount: told, not refused. */
const TOLD = ["userId", "ttlSeconds"];

function unknownIn(op: ModelRequest["op"], input: Input): string[] {
  const known = KNOWN[op];
  if (known === undefined) return [];
  return Object.keys(input).filter((name) => !known.includes(name) && input[name] != null);
}

/** Whether no unknown member of a metering call is a mistaken amount. */
export function hasNoMistake(op: ModelRequest["op"], input: Input): boolean {
  return unknownIn(op, input).every((name) =>
    TOLD.includes(name) || !MISTAKES.test(name.replaceAll(/[-_]/g, "").toLowerCase())
  );
}

/** The reply with a warning for each unknown member, after its other warnings. */
export function tellingUnknown(op: ModelRequest["op"], input: Input, reply: ModelReply): ModelReply {
  const told = unknownIn(op, input).map((name) => `unknown_member: ${name}`);
  if (told.length === 0 || reply.status !== 200) return reply;
  const { warnings = [] } = (reply.data ?? {}) as { warnings?: string[] };
  return { ...reply, data: { ...reply.data, warnings: [...warnings, ...told] } };
}
