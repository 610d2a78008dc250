// Credits for the system made of the pure domain: grant, extend, revoke, list and ledger in the wire's shape.

import { shownOf } from "../../src/domain/credits/balances.ts";
import { listBalances } from "../../src/domain/state/credit.ts";
import { ownerOf } from "../../src/domain/values/ids.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { showBalance } from "../../routes/calls/shown_records.ts";
import type { DecideSystem } from "./decide_system.ts";
import { SHOW, showEntry } from "./wire_answer.ts";
import { grantOf, textOrNull, userOf } from "./wire_input.ts";
import type { Input, ModelReply, ModelRequest } from "../model/document.ts";

/** Answers a credits call at a moment. */
export function answerCredits(system: DecideSystem, { op, input }: ModelRequest, now: Millis): ModelReply {
  switch (op) {
    case "grant":
      return grant(system, input, now);
    case "extend":
      return extend(system, input, now);
    case "revoke":
      return revoke(system, input, now);
    case "credits":
      return list(system, input, now);
    default:
      return ledger(system, input, now);
  }
}

function grant(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const command = grantOf(input);
  const state = system.stateOf(userOf(input), now);
  const { externalRef } = command;
  if (externalRef !== null) {
    state.admit(system.tables.loadBalances(state.user.key, { externalRefs: [externalRef] }));
  }
  return system.ask(userOf(input), "grant", command, now, SHOW.grant);
}

function extend(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const balanceId = String(input["balanceId"]);
  const userId = ownerWith(system, balanceId, now);
  if (userId === null) return { status: 404, code: "credit_balance_not_found" };
  const expiresAt = input["expiresAt"] === null ? null : Date.parse(String(input["expiresAt"]));
  const command = { balanceId, expiresAt, reason: textOrNull(input["reason"]) };
  return system.ask(userId, "extend", command, now, SHOW.extend);
}

/** The user that a balance's id names, with the balance in memory; null for an unknown user. */
function ownerWith(system: DecideSystem, balanceId: string, now: Millis): string | null {
  const owner = ownerOf("creditBalance", balanceId);
  const userId = owner === null ? undefined : system.nameOf(owner);
  if (owner === null || userId === undefined) return null;
  const state = system.stateOf(userId, now);
  if (!state.balances.has(balanceId)) state.admit(system.tables.loadBalances(state.user.key, { balanceId }));
  return userId;
}

function revoke(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const balanceId = String(input["balanceId"]);
  const userId = ownerWith(system, balanceId, now);
  if (userId === null) return { status: 404, code: "credit_balance_not_found" };
  const command = { balanceId, reason: textOrNull(input["reason"]) };
  return system.ask(userId, "revoke", command, now, () => ({ balanceId, remaining: 0 }));
}

function list(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const event = textOrNull(input["event"]);
  return system.ask(userOf(input), "credits", { event }, now, (answer) => {
    if (String(input["includeExpired"]) !== "true") return SHOW.credits(answer);
    const all = system.tables.balances(answer.userKey);
    const shown = listBalances(all, { event, includeExpired: true }, now);
    const named = shown.map((row) => shownOf(row, system.catalog));
    return { credits: named.map((balance) => showBalance(balance, now)) };
  });
}

/** The cursor is the number of entries that older pages have left. */
function ledger(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const userId = userOf(input);
  system.run(userId, "credits", { event: null }, now);
  const { key } = system.stateOf(userId, now).user;
  const balanceId = textOrNull(input["balanceId"]);
  if (balanceId !== null && !system.tables.balances(key).some(({ id }) => id === balanceId)) {
    return { status: 404, code: "credit_balance_not_found" };
  }
  const rows = system.tables.ledger(key).filter((row) => balanceId === null || row.balanceId === balanceId);
  rows.sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1));
  const cursor = textOrNull(input["cursor"]);
  const from = cursor === null ? 0 : rows.findIndex(({ id }) => id === cursor) + 1;
  const limit = Number(input["limit"] ?? 50);
  const page = rows.slice(from, from + limit);
  const entries = page.map(showEntry);
  const hasMore = rows.length > from + limit;
  return { status: 200, data: { entries, nextCursor: hasMore ? page.at(-1)?.id ?? null : null } };
}
