// Rows of the runtime: first answers to idempotent calls, and counts for workspaces and realms.

import type {
  AiSpendRow,
  GatewaySpendRow,
  IdempotencyRow,
  IssuesRow,
  OperationsRow,
} from "../../../actors/port.ts";
import { copiedText, copyText, NULL } from "../database.ts";
import { amount, column, table } from "./columns.ts";

export const IDEMPOTENCY = table<IdempotencyRow>("idempotency", 2, {
  realm: column("realm"),
  key: column("key"),
  requestHash: column("request_hash", { mutable: true }),
  status: column("status", { mutable: true }),
  body: column("body", { mutable: true }),
  userKey: column("user_key", { mutable: true }),
  at: column("at_ms", { mutable: true }),
}, lineOfAnswer);

/** Every call with a key writes one. */
function lineOfAnswer({ realm, key, requestHash, status, body, userKey, at }: IdempotencyRow): string {
  return [realm, copyText(key), copyText(requestHash), status, copyText(body), userKey ?? NULL, at].join(
    "\t",
  );
}

/** Reads a line that `lineOfAnswer` made. */
export function readAnswer(line: string): IdempotencyRow {
  const [realm, key, requestHash, status, body, userKey, at] = line.split("\t").map(copiedText);
  return {
    realm: Number(realm),
    key: key ?? "",
    requestHash: requestHash ?? "",
    status: Number(status),
    body: body ?? "",
    userKey: userKey == null ? null : Number(userKey),
    at: Number(at),
  };
}

export const OPERATIONS = table<OperationsRow>("operations", 3, {
  workspaceId: column("workspace_id"),
  mode: column("mode"),
  month: column("month"),
  used: column("used", { mutable: true }),
});

export const CREDIT_ISSUES = table<IssuesRow>("credit_issues", 1, {
  realm: column("realm"),
  issued: column("issued", { mutable: true }),
});

export const AI_SPEND = table<AiSpendRow>("ai_spend", 2, {
  workspaceId: column("workspace_id"),
  month: column("month"),
  cents: amount("cents", { mutable: true }),
});

export const GATEWAY_SPEND = table<GatewaySpendRow>("gateway_spend", 3, {
  workspaceId: column("workspace_id"),
  appId: column("app_id"),
  month: column("month"),
  cents: amount("cents", { mutable: true }),
});
