// The form of a call's definition: where it answers, who may call it, what it takes and answers, and the words of the
// reference. A definition is data: handlers (routes/calls) are bound to it, and the OpenAPI document, the tools of agents
// and the console's calls are made from it.

import type { z } from "zod";
import type { RefusalCode } from "../../src/domain/values/refusal.ts";
import type { Tag } from "./tags.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * Who may make a call with an API key: `secret` a secret key; `credit_write` a secret key, a public one is `forbidden`;
 * `hidden` a secret key, to a public one the path is unknown; `any` either key; `end_user` a secret key, or a public key
 * with an end-user token; `token` either key, always with a token; `test_secret` a secret key of test mode.
 */
export type Access = "secret" | "credit_write" | "hidden" | "any" | "end_user" | "token" | "test_secret";

/** What the API reference shows of a call. */
export interface CallDoc {
  /** The name of the call, unique among all calls; clients that are generated name their methods by it. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** The `data` of a 200 answer, or the whole answer where `mediaType` is set. */
  readonly answer: z.ZodType;
  /** Error codes of its own, beside those that its access and its method bring. */
  readonly errors: readonly RefusalCode[];
}

/** A call of the API. */
export interface CallDefinition extends CallDoc {
  readonly method: Method;
  /** Under `/api`, with `:name` for path members. */
  readonly path: string;
  /** Who may call: callers with an API key, with the admin token, or without either. */
  readonly access: Access | "admin" | "open";
  /** Members of path, query and body in one object; null for a call that takes none. */
  readonly input: z.ZodType | null;
  /** Reads members that need no work of the schema, many times faster; null where only the schema can decide. */
  readonly plain?: (members: Readonly<Record<string, unknown>>) => unknown;
  /** Members that come in the query of a call with a body. */
  readonly inQuery?: readonly string[];
  /** Set where the whole body is one member of the input, which the handler checks by a schema of its own. */
  readonly wholeBody?: { readonly member: string; readonly schema: z.ZodType };
  /** Set where the text of the body is one member of the input, and a header with its signature another. */
  readonly signedBody?: { readonly text: string; readonly signature: string; readonly header: string };
  /** Set where a call whose method allows a body has none. */
  readonly hasNoBody?: boolean;
  /** Members that callers easily write by mistake, each with what to write instead. */
  readonly slips?: Readonly<Record<string, string>>;
  /**
   * Whether one call carries many: its body may be larger, and its handler counts each element against the rate limit and
   * checks the texts of each.
   */
  readonly isBatch?: boolean;
  /** Whether a nested `options` object may hold members of the body. */
  readonly hasOptions?: boolean;
  /** Whether an answer holds a token: it is then not kept under an idempotency key. */
  readonly answersToken?: boolean;
  /** Whether a call may also be an element of a batch, where its idempotency key covers its value. */
  readonly mayBeInBatch?: boolean;
  /** Whether a call may take long. The cell of its workspace is not handed over before the call has ended. */
  readonly isLong?: boolean;
  /**
   * Whether a call waits outside of its cell until something changes. It has left the cell when its handler returns, enters
   * the cell again for each read, and throws CellGone where the cell has moved meanwhile: the call then goes to the new owner.
   */
  readonly waitsOutside?: boolean;
  /** The media type of an answer without the envelope. */
  readonly mediaType?: string;
}

/** A call with an API key. */
export interface KeyedDefinition extends CallDefinition {
  readonly access: Access;
  readonly input: z.ZodType;
}

/** A call with the admin token, or without any. */
export interface KeylessDefinition extends CallDefinition {
  readonly access: "admin" | "open";
  /** The member that names the app or workspace whose owner runs the call. Left out: it runs anywhere. */
  readonly about?: "appId" | "workspaceId";
}

/** Checks the form of a definition and keeps its own type. */
export function defineCall<const Call extends KeyedDefinition | KeylessDefinition>(
  call: Call & { readonly [Unknown in Exclude<keyof Call, keyof KeylessDefinition>]: never },
): Call {
  return call;
}

/** Definitions by their ids. */
export function callsById<
  Calls extends { readonly [Id in keyof Calls]: CallDefinition & { readonly id: Id } },
>(
  calls: Calls,
): Calls {
  return calls;
}

/** What a caller sends: members of path, query and body in one object. */
export type InputOf<Call extends Pick<CallDefinition, "input">> = Call["input"] extends z.ZodType
  ? z.input<Call["input"]>
  : Record<string, never>;

/** What a handler gets: the input after its schema. */
export type CheckedOf<Call extends Pick<CallDefinition, "input">> = Call["input"] extends z.ZodType
  ? z.output<Call["input"]>
  : null;

/** The `data` of an answer as a caller reads it. */
export type AnswerOf<Call extends Pick<CallDefinition, "answer">> = z.output<Call["answer"]>;

/** The `data` of an answer as a handler gives it: the same, of values that do not change any more. */
export type DataOf<Call extends Pick<CallDefinition, "answer">> = Shown<Call["answer"]>;

/** A record of an answer as a handler gives it. */
export type Shown<Schema extends z.ZodType> = Fixed<z.output<Schema>>;

/** A type with every member readonly, at any depth. */
export type Fixed<Of> = Of extends readonly (infer Each)[] ? readonly Fixed<Each>[]
  : Of extends object ? { readonly [Name in keyof Of]: Fixed<Of[Name]> }
  : Of;
