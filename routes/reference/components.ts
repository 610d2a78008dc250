// The parts of the API reference that its endpoints share: the texts at its head, key classes as security schemes,
// parameters and headers of every call, and the shape of errors.

import { REFUSAL_CODES } from "../../src/domain/values/refusal.ts";
import type { Access } from "../contract/definition.ts";
import { STATUS } from "../http/errors.ts";
import { MEANING } from "./errors.ts";
import type { JsonSchema } from "./json_schema.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const DESCRIPTION =
  `Metering and entitlements for products that resell AI: reserve quota before work, settle it afterwards.

**Answers.** Every JSON answer is \`{ "ok": true, "data": ... }\` with status 200, or
\`{ "ok": false, "error": { "code", "message", "details"? } }\` with the status of its code. Reserve's
\`limit_reached\` is data, not an error. Members may be added to answers; unknown members of calls are ignored.
\`null\` for an optional member is the same as leaving it out, except where a member says otherwise.

**Keys.** \`sk_live_\` and \`sk_test_\` are secret and stay in your backend; \`pk_live_\` and \`pk_test_\` are public.
With a public key, usage and credits need \`X-End-User-Token\`. Live and test mode share the catalog and nothing else.

**Retries.** Send \`Idempotency-Key\` with a POST or DELETE under \`/api/v1\`, and a retry within 24 hours gets the
first answer again, with \`Idempotent-Replayed: true\`.

**Amounts** keep six decimal places, exactly. **Times** are ISO 8601 in UTC.

**Errors**

| code | status | when |
| --- | --- | --- |
${REFUSAL_CODES.map((code) => `| \`${code}\` | ${STATUS[code]} | ${MEANING[code]} |`).join("\n")}

**Agents** read the feed through the Model Context Protocol at \`POST /mcp\`, with a secret key.

A path that nothing answers at is \`not_found\`, a known path with another method \`method_not_allowed\`.`;

/** What the document says of itself. */
export const INFO: JsonSchema = {
  title: "Holdfast",
  version: "1",
  summary: "Metering and entitlements for products that resell AI",
  description: DESCRIPTION,
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
};

/** Who may call, as security schemes: the key classes and the admin token. */
export const SECURITY_SCHEMES = {
  secretKey: { type: "http", scheme: "bearer", description: "A secret key: sk_live_... or sk_test_..." },
  testSecretKey: { type: "http", scheme: "bearer", description: "A secret key of test mode: sk_test_..." },
  publicKey: { type: "http", scheme: "bearer", description: "A public key: pk_live_... or pk_test_..." },
  endUserToken: {
    type: "apiKey",
    in: "header",
    name: "X-End-User-Token",
    description: 'base64url(JSON {"userId","exp"}) "." base64url(HMAC-SHA-256 of the first part) under the ' +
      "app's identity secret; exp in Unix seconds",
  },
  adminToken: { type: "http", scheme: "bearer", description: "HOLDFAST_ADMIN_TOKEN" },
} as const;

type Requirement = { readonly [Scheme in keyof typeof SECURITY_SCHEMES]?: readonly string[] };

/** The alternatives of who may call, by access. */
export const SECURITY: Readonly<Record<Access | "admin" | "open", readonly Requirement[]>> = {
  secret: [{ secretKey: [] }],
  credit_write: [{ secretKey: [] }],
  hidden: [{ secretKey: [] }],
  any: [{ secretKey: [] }, { publicKey: [] }],
  end_user: [{ secretKey: [] }, { publicKey: [], endUserToken: [] }],
  token: [{ secretKey: [], endUserToken: [] }, { publicKey: [], endUserToken: [] }],
  test_secret: [{ testSecretKey: [] }],
  admin: [{ adminToken: [] }],
  open: [],
};

/** Header parameters that many endpoints take. */
export const PARAMETERS = {
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description: "A retry with the same key, path and body gets the first answer again, for 24 hours",
    schema: { type: "string", minLength: 1, maxLength: REQUEST_LIMITS.idempotencyKeyLengthMax },
  },
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    required: false,
    description: "Your name for this call; answered again, and in the logs",
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,100}$" },
  },
} as const;

/** Headers of answers. */
export const HEADERS = {
  RequestId: { description: "The call's name in the logs", schema: { type: "string" } },
  IdempotentReplayed: {
    description: "The first answer to this Idempotency-Key, again",
    schema: { type: "string", const: "true" },
  },
  RetryAfter: { description: "Whole seconds", schema: { type: "integer", minimum: 1 } },
} as const;

/** The envelope of every error. */
export const ERROR: JsonSchema = {
  type: "object",
  properties: {
    ok: { type: "boolean", const: false },
    error: {
      type: "object",
      properties: {
        code: { type: "string", enum: REFUSAL_CODES },
        message: { type: "string", description: "What was wrong and which member, in words" },
        details: { description: "More about it, where the code has some" },
      },
      required: ["code", "message"],
    },
  },
  required: ["ok", "error"],
};

/** A reference to a component. */
export function refTo(kind: "schemas" | "parameters" | "headers", name: string): JsonSchema {
  return { $ref: `#/components/${kind}/${name}` };
}
