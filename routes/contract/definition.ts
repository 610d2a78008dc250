// The form of a call's definition: path, access, input, answer, and the texts of the reference. It is data: handlers
// (routes/calls) are bound to it, and the OpenAPI document, the tools of agents and the console's calls are made from it.

import type { z } from "zod";
import type { RefusalCode } from "../../src/domain/values/refusal.ts";
import type { Slips } from "./slips.ts";
import type { Tag } from "./tags.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * Who may make a call with an API key: `secret` a secret key; `credit_write` a secret key, a public one is `forbidden`;
 * `hidden` a secret key, to a public one the path is unknown; `any` either key; `any_user` either key, and a public one may
 * bring an end-user token; `end_user` a secret key, or a public key with an end-user token; `token` either key, always with a token; `test_secret` a secret key of test mode.
 */
export type Access =
  | "secret"
  | "credit_write"
  | "hidden"
  | "any"
  | "any_user"
  | "end_user"
  | "token"
  | "test_secret";

/** What the API reference shows of a call. */
export interface CallDoc {
  /** The unique name of the call; generated clients name their functions by it. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** The `data` of a 200 answer, or the whole answer where `mediaType` is set. */
  readonly answer: z.ZodType;
  /** Its own error codes; others follow from its access and method. */
  readonly errors: readonly RefusalCode[];
}

/** A call of the API. */
export interface CallDefinition extends CallDoc {
  readonly method: Method;
  /** Below `/api`, with `:name` for path members. */
  readonly path: string;
  /** Who may call: callers with an API key, with the admin token, or without either. */
  readonly access: Access | "admin" | "open";
  /** Whether a user's key may make the call, for its own user alone. Any other call refuses it. */
  readonly takesUserKey?: boolean;
  /** Whether a POST only reads, so that a read-only key may make the call, as it may every GET. */
  readonly isRead?: boolean;
  /** Members of path, query and body in one object; null for a call without input. */
  readonly input: z.ZodType | null;
  /** Reads input that the schema would leave unchanged, many times faster; null for any other input. */
  readonly plain?: (members: Readonly<Record<string, unknown>>) => unknown;
  /** Members that come in the query of a call with a body. */
  readonly inQuery?: readonly string[];
  /** Set if the whole body is one member of the input; `schema` is for the reference, the handler checks the body. */
  readonly wholeBody?: { readonly member: string; readonly schema: z.ZodType };
  /** Set if the text of the body is one member of the input, and the header with its signature another. */
  readonly signedBody?: {
    readonly text: string;
    readonly signature: string;
    readonly header: string;
    readonly bytesMax: number;
  };
  /** Set if a call has no body although its method allows one. */
  readonly hasNoBody?: boolean;
  /**
   * Set if no unknown member is ignored: common mistakes are refused with what to write instead, all others are warnings of
   * the answer. The input is then a z.object.
   */
  readonly slips?: Slips;
  /** Members that say again what another one says, such as the user of a reservation: they need no warning. */
  readonly repeats?: readonly string[];
  /** Whether the call is a batch: its body may be larger, and its handler counts each element against the rate limit. */
  readonly isBatch?: boolean;
  /** The list whose elements the handler checks one by one, their texts too, so that an invalid one fails alone. */
  readonly elements?: string;
  /** Whether a nested `options` object may hold members of the body. */
  readonly hasOptions?: boolean;
  /** Whether the answer contains a token: it is then not kept under an idempotency key. */
  readonly answersToken?: boolean;
  /** Whether the call may also be an element of a batch: its idempotency key then covers the value of the input. */
  readonly mayBeInBatch?: boolean;
  /** Whether the call may take long. The cell of its workspace is not handed over before it has ended. */
  readonly isLong?: boolean;
  /**
   * Whether the call waits outside of its cell until something changes. It has left the cell when its handler returns, enters
   * the cell again for each read, and throws CellGone if the cell has moved: the call then goes to the new owner. It checks
   * a user's key at each read.
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

/** A call with the admin token, or open to everyone. */
export interface KeylessDefinition extends CallDefinition {
  readonly access: "admin" | "open";
  /** The member that names an app or workspace: its owner runs the call. Left out: any process runs it. */
  readonly about?: "appId" | "workspaceId";
}

/** Refuses unknown members, and a `plain` that reads the input as another type than its schema. */
type Checked<Call extends CallDefinition> =
  & { readonly [Unknown in Exclude<keyof Call, keyof KeylessDefinition>]: never }
  & { readonly plain?: (members: Readonly<Record<string, unknown>>) => CheckedOf<Call> | null };

/** Checks the form of a definition and keeps its own type. */
export function defineCall<const Call extends KeyedDefinition | KeylessDefinition>(
  call: Call & Checked<Call>,
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

/** The `data` of an answer as a handler returns it: the same, readonly. */
export type DataOf<Call extends Pick<CallDefinition, "answer">> = Shown<Call["answer"]>;

/** A record of an answer as a handler returns it. */
export type Shown<Schema extends z.ZodType> = Fixed<z.output<Schema>>;

/** A type with every member readonly, at any depth. */
type Fixed<Of> = Of extends readonly (infer Each)[] ? readonly Fixed<Each>[]
  : Of extends object ? { readonly [Name in keyof Of]: Fixed<Of[Name]> }
  : Of;
