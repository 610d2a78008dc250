// The history of a run: every call of a client with when it was made and answered, each time it was sent, and what
// came back.

import type { Input, ModelReply, ModelRequest } from "../model/document.ts";
import { wireOf } from "../model/wire.ts";
import type { Turn } from "./recorder.ts";
import type { Tenant } from "./tenants.ts";
import type { Owner } from "./time.ts";

/** A request: of a kind that the model knows, one of privacy, a move of the test clock, or one of the registry. */
export type SimRequest = ModelRequest | { op: UnmodelledOp; input: Input };

const POSTS = {
  erase: "/delete-person",
  optOut: "/opt-out",
  optIn: "/opt-in",
  testClock: "/test-clock",
  trackBatch: "/track/batch",
  batch: "/batch",
} as const;

const REGISTRY_OPS = [
  "plans",
  "applyCatalog",
  "promoteCatalog",
  "setCap",
  "createKey",
  "revokeKey",
  "setWebhook",
  ...["listWorkspaces", "listApps", "listStores", "createWorkspace"] as const,
] as const;

const KEY_OPS = ["createUserKey", "revokeUserKey", "ownUsage"] as const;

const TOP_UP_OPS = ["putTopUp", "deleteTopUp", "useUp"] as const;

type UnmodelledOp =
  | (typeof TOP_UP_OPS)[number]
  | keyof typeof POSTS
  | (typeof REGISTRY_OPS)[number]
  | (typeof KEY_OPS)[number];

/** A request as HTTP knows it. */
export interface SimWireRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** Whether it brings the admin token in the place of a key. */
  readonly isAdmin?: boolean;
}

/** The HTTP form of a request of a tenant. */
export function wireOfRequest(request: SimRequest, { workspaceId, appId, caps }: Tenant): SimWireRequest {
  if (isOfModel(request)) {
    const wire = wireOf(request);
    return { ...wire, path: `/api/v1${wire.path}` };
  }
  const { op, input } = request;
  const admin = (method: string, path: string, body?: unknown): SimWireRequest => ({
    method,
    path: `/api/admin/v1${path}`,
    body,
    isAdmin: true,
  });
  switch (op) {
    case "plans":
      return { method: "GET", path: "/api/v1/plans" };
    case "applyCatalog":
      return admin("PUT", `/apps/${appId}/catalog${caps.mode === "test" ? "?mode=test" : ""}`, input);
    case "promoteCatalog":
      return admin("POST", `/apps/${appId}/catalog/promote`, input);
    case "setCap":
      return admin("PATCH", `/workspaces/${workspaceId}`, input);
    case "createKey":
      return admin("POST", `/apps/${appId}/keys`, input);
    case "revokeKey":
      return admin("DELETE", `/apps/${appId}/keys/${input["keyId"]}`);
    case "createUserKey":
      return { method: "POST", path: `/api/v1/users/${input["userId"]}/keys`, body: {} };
    case "revokeUserKey":
      return { method: "DELETE", path: `/api/v1/users/${input["userId"]}/keys/${input["userKeyId"]}` };
    case "ownUsage":
      return { method: "GET", path: `/api/v1/usage?userId=${input["userId"]}` };
    case "putTopUp": {
      const { userId, ...setting } = input;
      const card = { stripeCustomerId: "cus_1", stripePaymentMethodId: "pm_1" };
      const body = { packId: "cpk_top_up", ...setting, ...card };
      return { method: "PUT", path: `/api/v1/users/${userId}/top-up`, body };
    }
    case "deleteTopUp":
      return { method: "DELETE", path: `/api/v1/users/${input["userId"]}/top-up` };
    case "useUp":
      return { method: "POST", path: "/api/v1/track", body: { ...input, event: "image.make" } };
    case "listWorkspaces":
      return admin("GET", "/workspaces");
    case "createWorkspace":
      return admin("POST", "/workspaces", input);
    case "listApps":
      return admin("GET", "/apps");
    case "listStores":
      return admin("GET", "/stores");
    case "setWebhook":
      return admin("PATCH", `/apps/${appId}/webhooks/${input["webhookId"]}`, { disabled: input["disabled"] });
    default:
      return { method: "POST", path: `/api/v1${POSTS[op]}`, body: input };
  }
}

/** Whether a request changes or reads the registry. */
function isOfRegistry({ op }: SimRequest): boolean {
  return (REGISTRY_OPS as readonly string[]).includes(op);
}

/** Whether a request is about a key of a user, or brings one. */
function isOfUserKeys({ op }: SimRequest): boolean {
  return (KEY_OPS as readonly string[]).includes(op);
}

/** An answer as a process gave it. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  readonly isReplayed: boolean;
  readonly model: ModelReply;
}

/** One time that a call was sent. */
export interface Attempt {
  readonly call: Call;
  /** Travels as X-Request-Id, also where another node runs the call. */
  readonly id: string;
  /** The process that the client asked. */
  readonly process: Owner;
  readonly sentAt: number;
  /** The calendar at that time. */
  readonly sentOnMs: number;
  /** Virtual milliseconds when it arrived. */
  readonly arrivedMs: number;
  /** How long its process took to answer. */
  tookMs: number;
  /** The calendar when a process knew its caller, that which was asked and then the owner, and when it answered. */
  readonly seenOnMs: number[];
  /** Turns that ran for it; the last one answered. */
  readonly turns: Turn[];
  /** What the process answered, whether or not the client heard it. */
  reply: Reply | null;
  /** When the process answered. */
  repliedAt: number | null;
}

/** A call as its client sees it. */
export interface Call {
  readonly no: number;
  readonly tenant: Tenant;
  /** The API key that it brings; those of the administrator bring the admin token. */
  readonly bearer: string;
  readonly request: SimRequest;
  /** Its idempotency key. */
  readonly key: string | null;
  /** The place in the order of calls, turns and answers. */
  readonly calledAt: number;
  readonly attempts: Attempt[];
  /** When the client heard an answer that ends the call. */
  answeredAt: number | null;
  answer: Reply | null;
  /** The client has stopped to ask. */
  isGivenUp: boolean;
  /** Virtual milliseconds of the first sending. */
  readonly atMs: number;
}

/** Whether the model has an answer to a request about any user. */
export function isOfModel(request: SimRequest): request is ModelRequest {
  return !Object.hasOwn(POSTS, request.op) && !isOfRegistry(request) && !isOfUserKeys(request) &&
    !(TOP_UP_OPS as readonly string[]).includes(request.op);
}

/** Whether an answer ends a call: anything but a fault that may pass. */
export function isFinal({ status, body }: Reply): boolean {
  // Of calls in one request some may be undecided yet.
  return status !== 503 && !body.includes('{"status":503,');
}

/** The calls that a request makes: those in a batch, or the one that it is. */
export function elementsOf({ op, input }: SimRequest): readonly Input[] {
  const elements = op === "trackBatch" ? input["events"] : op === "batch" ? input["calls"] : [input];
  return elements as readonly Input[];
}

/** Whether a request makes many calls. */
export function isBatch({ op }: SimRequest): boolean {
  return op === "trackBatch" || op === "batch";
}
