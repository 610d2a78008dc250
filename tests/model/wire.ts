// The model's requests as HTTP: the method, path and body of each. `replyFromWire` reads the answers.

import { type Input, type ModelReply, type ModelRequest, replyFromWire } from "./document.ts";

/** A request as HTTP knows it, under `/api/v1`. */
interface WireRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  body?: Input;
}

/** Calls `/api/v1`; what a `TestApp` offers. */
type CallApi = (
  method: string,
  path: string,
  body?: unknown,
) => Promise<{ status: number; body: unknown }>;

const POSTS: Partial<Record<ModelRequest["op"], string>> = {
  reserve: "/reserve",
  commit: "/commit",
  release: "/release",
  track: "/track",
  canUse: "/can-use",
  explain: "/explain",
  subscribe: "/subscriptions",
  grant: "/credits/grant",
  extend: "/credits/extend",
  revoke: "/credits/revoke",
  alias: "/customers/alias",
  aliasBatch: "/customers/alias/batch",
  createRun: "/runs",
};

/** The HTTP form of a request. */
export function wireOf({ op, input }: ModelRequest): WireRequest {
  const path = POSTS[op];
  if (path !== undefined) return { method: "POST", path, body: input };
  switch (op) {
    case "usage":
      return { method: "GET", path: `/usage${queryOf(input)}` };
    case "users":
      return { method: "GET", path: `/users/${encodeURIComponent(String(input["userId"]))}` };
    case "customer":
      return { method: "GET", path: `/customers/${encodeURIComponent(String(input["userId"]))}` };
    case "events":
      return { method: "GET", path: `/events${queryOf(input)}` };
    case "credits":
      return { method: "GET", path: `/credits${queryOf(input)}` };
    case "ledger":
      return { method: "GET", path: `/credits/history${queryOf(input)}` };
    case "event":
      return { method: "GET", path: `/events/${encodeURIComponent(String(input["eventId"]))}` };
    case "endRun": {
      const { runId, ...body } = input;
      return { method: "POST", path: `/runs/${encodeURIComponent(String(runId))}/end`, body };
    }
    case "getRun":
      return { method: "GET", path: `/runs/${encodeURIComponent(String(input["runId"]))}` };
    case "listRuns":
      return { method: "GET", path: `/runs${queryOf({ ...input, limit: 100 })}` };
    case "parent": {
      const { userId, ...body } = input;
      return { method: "PUT", path: `/users/${encodeURIComponent(String(userId))}/parent`, body };
    }
    case "spendCap":
      return { method: "PUT", path: "/usage/spend-cap", body: input };
    case "overage":
      return { method: "GET", path: `/overage${queryOf(input)}` };
    case "unschedule":
      return { method: "DELETE", path: "/subscriptions/scheduled", body: input };
    case "cancel":
      return { method: "DELETE", path: "/subscriptions", body: input };
    default:
      throw new Error(`no path for ${op}`);
  }
}

/** Sends a request and reads the answer as the model speaks it. */
export async function sendOverWire(call: CallApi, request: ModelRequest): Promise<ModelReply> {
  const { method, path, body } = wireOf(request);
  const answer = await call(method, path, body);
  return replyFromWire(answer.status, answer.body);
}

function queryOf(input: Input): string {
  const members = Object.entries(input).filter(([, value]) => value !== undefined && value !== null);
  if (members.length === 0) return "";
  return `?${new URLSearchParams(members.map(([name, value]) => [name, String(value)]))}`;
}
