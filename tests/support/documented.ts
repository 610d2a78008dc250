// Holds answers against the API reference: what an operation answers must have exactly the members that its schema
// says, and a refusal must carry a code that the reference lists for it. Every answer that passes through `send` is
// looked at, so the whole suite proves the reference.

import assert from "node:assert/strict";
import type { z } from "zod";
import { SURFACE } from "../../routes/surface.ts";
import { STATUS } from "../../routes/http/errors.ts";
import { errorsOf } from "../../routes/reference/errors.ts";
import type { RefusalCode } from "../../src/domain/values/refusal.ts";

/** An operation as the reference knows it. */
interface Documented {
  readonly id: string;
  readonly method: string;
  /** The whole path, with `:name` for path members. */
  readonly path: string;
  readonly pattern: RegExp;
  readonly answer: z.ZodType;
  readonly errors: readonly RefusalCode[];
  readonly isRaw: boolean;
  /** Whether it is a call of another API. */
  readonly isForeign: boolean;
}

const { calls, pages } = SURFACE;

/** Every operation of the reference. */
export const DOCUMENTED: readonly Documented[] = [
  ...calls.map((call) => ({
    ...common(call.method, `/api${call.path}`, call),
    errors: errorsOf(call),
    isRaw: call.mediaType !== undefined,
  })),
  ...pages.map(({ path, doc, mediaType, foreign }) => ({
    ...common(foreign?.method ?? "GET", path, doc),
    errors: doc.errors,
    isRaw: mediaType !== null,
    isForeign: foreign !== undefined,
  })),
];

/** Tests send thousands of calls without a pause: a fixed path is found at once, others by their patterns. */
const FIXED = new Map(DOCUMENTED.map((one) => [`${one.method} ${one.path}`, one]));
const PATTERNED = DOCUMENTED.filter(({ path }) => path.includes(":"));

/** The operation that a call is for, or null: a fixed path before one with members. */
function documentedOf(method: string, url: string): Documented | null {
  const [path = ""] = url.split("?", 1);
  const fixed = FIXED.get(`${method} ${path}`);
  return fixed ?? PATTERNED.find((one) => one.method === method && one.pattern.test(path)) ?? null;
}

/** Fails where an answer is not what the reference says of its operation. */
export function assertDocumented(method: string, url: string, status: number, body: unknown): void {
  const operation = documentedOf(method, url);
  if (operation === null || operation.isForeign || typeof body !== "object" || body === null) return;
  const note = () => `${method} ${url} answered what the reference does not say: ${JSON.stringify(body)}`;
  if (status !== 200) {
    const { code } = (body as { error: { code: RefusalCode } }).error;
    assert.ok(operation.errors.includes(code), note());
    assert.equal(status, STATUS[code], note());
    return;
  }
  const data = operation.isRaw ? body : (body as { data: unknown }).data;
  const { error } = operation.answer.safeParse(data);
  assert.ok(error === undefined, `${note()}: ${JSON.stringify(error?.issues)}`);
}

function common(method: string, path: string, doc: { readonly id: string; readonly answer: z.ZodType }) {
  const source = path.replaceAll(".", "\\.").replace(/:\w+/g, "[^/]+");
  return {
    id: doc.id,
    method,
    path,
    pattern: new RegExp(`^${source}$`),
    answer: doc.answer,
    isRaw: false,
    isForeign: false,
  };
}
