// The API as an OpenAPI 3.1 document, generated from the definitions of its calls.

import { z } from "zod";
import type { RefusalCode } from "../../src/domain/values/refusal.ts";
import { OPTION_MEMBERS } from "../http/body.ts";
import { STATUS } from "../http/errors.ts";
import type { CallDefinition, CallDoc, Method } from "../contract/definition.ts";
import {
  ERROR,
  errorSchema,
  HEADERS,
  INFO,
  PARAMETERS,
  refTo,
  SECURITY_SCHEMES,
  securityOf,
} from "./components.ts";
import { TAGS } from "../contract/tags.ts";
import { errorsOf, MEANING } from "./errors.ts";
import { examplesOf } from "./examples.ts";
import { messageItems } from "./messages.ts";
import { type JsonSchema, recordName, SchemaWriter, withoutNull } from "./json_schema.ts";
import type { ForeignCall, Page } from "./pages.ts";

/** The input of the document. */
export interface Surface {
  readonly calls: readonly CallDefinition[];
  readonly pages: readonly Page[];
}

/** A call or a page, as the document shows it. */
interface Shown {
  readonly method: Method;
  readonly path: string;
  readonly doc: CallDoc;
  readonly errors: readonly RefusalCode[];
  readonly security: readonly unknown[];
  /** Members of path and query. */
  readonly parameters: JsonSchema;
  readonly body: JsonSchema | null;
  readonly isKeyed: boolean;
  /** The media type of an answer without envelope; null with one. */
  readonly rawType: string | null;
  /** The header with the signature of the body; left out for unsigned bodies. */
  readonly signature?: string;
  /** Set for a call of another API. */
  readonly foreign?: ForeignCall;
}

/** The OpenAPI document of the whole API. */
export function makeDocument({ calls, pages }: Surface): JsonSchema {
  const writer = new SchemaWriter();
  const shown = [
    ...calls.map((call) => showCall(writer, call)),
    ...pages.map((page) => showPage(writer, page)),
  ];
  const paths: Record<string, Record<string, unknown>> = {};
  for (const one of shown) {
    const path = one.path.replace(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[one.method.toLowerCase()] = operationObject(writer, one);
  }
  return {
    openapi: "3.1.1",
    info: INFO,
    // Where the document itself was read.
    servers: [{ url: "/" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: messageItems(writer),
    components: {
      schemas: { Error: ERROR, ...writer.components },
      securitySchemes: SECURITY_SCHEMES,
      parameters: PARAMETERS,
      headers: HEADERS,
    },
  };
}

function showCall(writer: SchemaWriter, call: CallDefinition): Shown {
  const { method, path, access } = call;
  const isKeyless = access === "admin" || access === "open";
  return {
    method,
    path: `/api${path}`,
    doc: call,
    errors: errorsOf(call),
    security: securityOf(call),
    ...placesOf(writer, call),
    isKeyed: !isKeyless && method !== "GET",
    rawType: call.mediaType ?? null,
    ...call.signedBody === undefined ? {} : { signature: call.signedBody.header },
  };
}

/** Splits the members of an input into path and query, and body. */
function placesOf(writer: SchemaWriter, call: CallDefinition): Pick<Shown, "parameters" | "body"> {
  const { method, path, input, inQuery = [], wholeBody, signedBody, hasOptions, hasNoBody } = call;
  if (input === null) return { parameters: {}, body: null };
  const members = writer.write(input);
  // The body of a DELETE has the members of the query; many clients cannot send it.
  if (method === "GET" || method === "DELETE" || hasNoBody === true) {
    return { parameters: members, body: null };
  }
  const inAddress = (name: string) => path.includes(`:${name}`) || inQuery.includes(name);
  if (signedBody !== undefined) return { parameters: only(members, inAddress), body: SIGNED };
  const body = wholeBody !== undefined
    ? writer.write(wholeBody.schema)
    : only(members, (name) => !inAddress(name));
  return { parameters: only(members, inAddress), body: hasOptions === true ? withOptions(body) : body };
}

const SIGNED: JsonSchema = {
  type: "object",
  description: "The bytes that the sender signed",
  additionalProperties: true,
};

/** The schema of an object, with some of its members. */
function only(schema: JsonSchema, isWanted: (name: string) => boolean): JsonSchema {
  const { properties = {}, required = [], ...rest } = schema as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  const needed = required.filter(isWanted);
  return {
    ...rest,
    properties: Object.fromEntries(Object.entries(properties).filter(([name]) => isWanted(name))),
    ...needed.length === 0 ? {} : { required: needed },
  };
}

/** Adds the nested `options` object, with the members that it may contain. */
function withOptions(members: JsonSchema): JsonSchema {
  const properties = members.properties as Record<string, JsonSchema>;
  const nested = Object.entries(properties).filter(([name]) => OPTION_MEMBERS.has(name));
  const options = {
    type: "object",
    description: "The same members may be sent here instead, but not in both places",
    properties: Object.fromEntries(nested),
  };
  return { ...members, properties: { ...properties, options } };
}

function showPage(writer: SchemaWriter, { path, doc, mediaType, foreign }: Page): Shown {
  return {
    method: foreign?.method ?? "GET",
    path,
    doc,
    errors: doc.errors,
    security: foreign === undefined ? [] : securityOf({ access: "secret", takesUserKey: true }),
    parameters: foreign?.parameters === undefined ? {} : writer.write(z.object(foreign.parameters)),
    body: foreign?.body == null ? null : writer.write(foreign.body),
    isKeyed: false,
    rawType: mediaType,
    ...foreign === undefined ? {} : { foreign },
  };
}

function operationObject(writer: SchemaWriter, shown: Shown): JsonSchema {
  const { doc, body, foreign } = shown;
  const example = examplesOf(doc.id).success;
  const requestBody = body === null ? undefined : {
    required: true,
    content: {
      [foreign?.bodyType ?? "application/json"]: {
        schema: writer.named(`${recordName(doc.id)}Request`, body),
        ...example?.body === undefined ? {} : { examples: { example: { value: example.body } } },
      },
    },
  };
  return {
    operationId: doc.id,
    tags: [doc.tag],
    summary: doc.summary,
    ...doc.description === undefined ? {} : { description: doc.description },
    parameters: parametersOf(shown),
    ...requestBody === undefined ? {} : { requestBody },
    responses: { 200: successOf(writer, shown), ...refusalsOf(writer, shown) },
    security: shown.security,
  };
}

function parametersOf({ path, doc, parameters, isKeyed, signature, foreign }: Shown): JsonSchema[] {
  const { properties = {}, required = [] } = parameters as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  const example = examplesOf(doc.id).success?.parameters ?? {};
  const own = Object.entries(properties).map(([name, member]) => {
    const isPath = path.includes(`:${name}`);
    const { description, ...schema } = withoutNull(member);
    const shown = example[name];
    return {
      name,
      in: isPath ? "path" : "query",
      required: isPath || required.includes(name),
      ...description === undefined ? {} : { description },
      schema,
      // Recorded parameters are strings.
      ...shown === undefined ? {} : { example: schema.type === "integer" ? Number(shown) : shown },
    };
  });
  const keyed = isKeyed ? [refTo("parameters", "IdempotencyKey")] : [];
  const headers = Object.entries(foreign?.headers ?? {}).map(([name, { description }]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  }));
  const signed = signature === undefined
    ? []
    : [{ name: signature, in: "header", required: true, schema: { type: "string" } }];
  return [...own, ...headers, ...signed, ...keyed, refTo("parameters", "RequestId")];
}

function successOf(writer: SchemaWriter, { doc, isKeyed, rawType, foreign }: Shown): JsonSchema {
  const name = `${recordName(doc.id)}Response`;
  const answer = writer.write(doc.answer as z.ZodType);
  const schema = writer.named(
    name,
    rawType !== null ? answer : {
      type: "object",
      properties: { ok: { type: "boolean", const: true }, data: writer.named(`${name}Data`, answer) },
      required: ["ok", "data"],
    },
  );
  const example = examplesOf(doc.id).success;
  return {
    description: doc.summary,
    headers: {
      "X-Request-Id": refTo("headers", "RequestId"),
      ...isKeyed
        ? {
          "Idempotent-Replayed": refTo("headers", "IdempotentReplayed"),
          "Idempotency-Key-Prefix": refTo("headers", "IdempotencyKeyPrefix"),
        }
        : {},
      ...Object.fromEntries(
        Object.entries(foreign?.answerHeaders ?? {}).map(([name, description]) =>
          [name, { description, schema: { type: "string" } }] as const
        ),
      ),
    },
    content: {
      [rawType ?? "application/json"]: {
        schema,
        ...example === undefined ? {} : { examples: { example: { value: example.answer } } },
      },
    },
  };
}

/** The response to an invalid request, of a page that defines no refusals of such. */
const ANY_ERROR = {
  "4XX": {
    description: "The request is invalid",
    headers: { "X-Request-Id": refTo("headers", "RequestId") },
    content: { "application/json": { schema: refTo("schemas", "Error") } },
  },
};

/** Errors with these codes, as a record that all calls with the same codes share. */
function refusalSchema(writer: SchemaWriter, codes: readonly RefusalCode[]): JsonSchema {
  const name = `${codes.map((code) => recordName(code)).join("Or")}Refusal`;
  return writer.components[name] === undefined
    ? writer.named(name, errorSchema(codes))
    : refTo("schemas", name);
}

/** One response for each status, with its error codes. */
function refusalsOf(writer: SchemaWriter, { doc, errors, foreign }: Shown): Record<string, JsonSchema> {
  const recorded = examplesOf(doc.id).refusals ?? {};
  const statusOf = (code: RefusalCode) =>
    code === "unavailable" ? foreign?.unavailable ?? STATUS[code] : STATUS[code];
  const byStatus = Object.entries(Object.groupBy(errors, statusOf));
  const own = Object.fromEntries(byStatus.map(([status, codes = []]) => {
    const found = codes.filter((code) => recorded[code] !== undefined);
    const examples = Object.fromEntries(found.map((code) => [code, { value: recorded[code] }]));
    const retries = codes.includes("unavailable") || codes.includes("rate_limited");
    return [status, {
      description: codes.map((code) => `\`${code}\`: ${MEANING[code]}`).join("\n\n"),
      headers: {
        "X-Request-Id": refTo("headers", "RequestId"),
        ...retries ? { "Retry-After": refTo("headers", "RetryAfter") } : {},
      },
      content: {
        "application/json": {
          schema: foreign !== undefined ? writer.write(foreign.error) : refusalSchema(writer, codes),
          ...found.length === 0 ? {} : { examples },
        },
      },
    }];
  }));
  return errors.some((code) => STATUS[code] < 500) ? own : { ...ANY_ERROR, ...own };
}
