// What an endpoint is, whoever may call it: where it answers, what it takes, and what the reference says of it.

import type { z } from "zod";
import type { EndpointDoc } from "./doc.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What an endpoint of any kind is. */
export interface Definition {
  readonly method: Method;
  /** Under `/api`, with `:name` for path members. */
  readonly path: string;
  /** Members of path, query and body in one object; null for a call that takes none. */
  readonly input: z.ZodType | null;
  /** What the schema makes of members that need none of its work; null where only the schema can say. */
  readonly plain?: (members: Readonly<Record<string, unknown>>) => unknown;
  /** Members that come in the query of a call with a body. */
  readonly inQuery?: readonly string[];
  /** Set where the whole body is one member of the input, which the handler checks by a schema of its own. */
  readonly wholeBody?: { readonly member: string; readonly schema: z.ZodType };
  /** Set where the text of the body is one member of the input, and a header another: a signature is of both. */
  readonly signedBody?: { readonly text: string; readonly signature: string; readonly header: string };
  /** Set where a call that could have a body has none: nothing of one is read. */
  readonly hasNoBody?: boolean;
  /** Members that look like a slip of the caller, each with what to write in its place. */
  readonly slips?: Readonly<Record<string, string>>;
  /**
   * Whether a call is many: its body may be larger, and its handler counts each element against the rate limit and looks at
   * the texts of each.
   */
  readonly isBatch?: boolean;
  /** Whether a nested `options` object may hold members of the body. */
  readonly hasOptions?: boolean;
  readonly doc: EndpointDoc;
}
