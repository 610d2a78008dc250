// The history of a run: every call of a client with when it was made and answered, each time it was sent, and what
// came back.

import type { Input, ModelReply, ModelRequest } from "../model/document.ts";
import { wireOf, type WireRequest } from "../model/wire.ts";
import type { Turn } from "./recorder.ts";

/** A request: one that the model knows, one of privacy, or a move of the test clock. */
export type SimRequest = ModelRequest | { op: keyof typeof UNMODELLED; input: Input };

const UNMODELLED = {
  erase: "/delete-person",
  optOut: "/opt-out",
  optIn: "/opt-in",
  testClock: "/test-clock",
} as const;

/** The HTTP form of a request. */
export function wireOfRequest(request: SimRequest): WireRequest {
  if (isOfModel(request)) return wireOf(request);
  return { method: "POST", path: UNMODELLED[request.op], body: request.input };
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
  readonly process: string;
  readonly sentAt: number;
  /** The calendar at that time. */
  readonly sentOnMs: number;
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

/** Whether the model has an answer to a request, whoever it is about. */
export function isOfModel(request: SimRequest): request is ModelRequest {
  return !Object.hasOwn(UNMODELLED, request.op);
}

/** Whether an answer ends a call: anything but a fault that may pass. */
export function isFinal({ status }: Reply): boolean {
  return status !== 503;
}
