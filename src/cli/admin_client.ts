// Calls the admin API of a running service over HTTP. A call returns its data. It throws a refusal of the service, or an
// error when the service cannot be reached.

import type { AnswerOf, KeylessDefinition } from "../../routes/contract/definition.ts";
import { readConfig } from "../process/settings.ts";
import { messageOf } from "../process/log.ts";
import { adminUrl, EXIT, settings, type Shell, TaskError } from "./shell.ts";
import { safeText } from "./table.ts";

/** Variables that the task reads. */
export const ADMIN_VARIABLES = [
  "PORT",
  "HOLDFAST_HOST",
  "HOLDFAST_DATA_DIR",
  "HOLDFAST_ADMIN_TOKEN",
  "HOLDFAST_ADMIN_LISTEN",
] as const;

const TOKEN_FILE = "admin-token";
const CALL_TIMEOUT_MS = 60_000;

/** The service answered with an error. */
export class ServiceRefusal extends TaskError {
  /** The error object of the answer. */
  readonly error: { readonly code: string; readonly message: string; readonly details: unknown };

  constructor(error: ServiceRefusal["error"]) {
    super(`Refused (${error.code}): ${safeText(error.message)}`, EXIT.refused);
    this.error = error;
  }
}

/** The settings have no admin token. */
export class NoToken extends TaskError {}

/** Members of path, query and body in one object; undefined ones are left out. */
export type Members = Readonly<Record<string, unknown>>;

/** The admin API. */
export interface AdminClient {
  call<Call extends KeylessDefinition>(call: Call, members?: Members): Promise<AnswerOf<Call>>;
  /** Makes a call that answers lines of JSON, and yields each line when it arrives. */
  lines(call: KeylessDefinition, members: Members): AsyncIterable<unknown>;
}

/** A client of the service that the options and settings name. */
export async function openAdminClient(url: string | undefined, shell: Shell): Promise<AdminClient> {
  const base = adminUrl(url, shell);
  const token = await adminToken(shell);
  return {
    call: (call, members = {}) => send(base, token, call, members),
    lines: (call, members) => receiveLines(base, token, call, members),
  };
}

async function adminToken(shell: Shell): Promise<string> {
  const { HOLDFAST_ADMIN_TOKEN, HOLDFAST_DATA_DIR } = shell.variables;
  const { dataDir, adminToken } = settings(() => readConfig({ HOLDFAST_ADMIN_TOKEN, HOLDFAST_DATA_DIR }));
  const token = adminToken ?? await readToken(`${dataDir}/${TOKEN_FILE}`);
  // Without this check, the error message of fetch would contain the token.
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new TaskError("The admin token has characters that are not allowed in a header", EXIT.usage);
}

async function readToken(file: string): Promise<string> {
  try {
    return (await Deno.readTextFile(file)).trim();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      throw new NoToken(
        `No admin token: set HOLDFAST_ADMIN_TOKEN to that of the service, or HOLDFAST_DATA_DIR to its folder ("${file}" is missing)`,
        EXIT.usage,
      );
    }
    throw new TaskError(`Cannot read "${file}": ${messageOf(error)}`, EXIT.usage);
  }
}

async function send<Data>(
  base: string,
  token: string,
  call: KeylessDefinition,
  members: Members,
): Promise<Data> {
  const { address, init } = requestOf(token, call, members);
  let status: number;
  let text: string;
  try {
    const response = await fetch(`${base}${address}`, {
      ...init,
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    status = response.status;
    text = await response.text();
  } catch (error) {
    throw unreachable(base, error);
  }
  return dataOf<Data>(base, status, text);
}

async function* receiveLines(
  base: string,
  token: string,
  call: KeylessDefinition,
  members: Members,
): AsyncIterable<unknown> {
  const { address, init } = requestOf(token, call, members);
  let rest = "";
  try {
    const response = await fetch(`${base}${address}`, init);
    if (response.status !== 200 || response.body === null) {
      dataOf(base, response.status, await response.text());
      return;
    }
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line);
    }
  } catch (error) {
    throw error instanceof TaskError ? error : unreachable(base, error);
  }
}

function unreachable(base: string, error: unknown): TaskError {
  return new TaskError(`Cannot reach the service at ${base}: ${messageOf(error)}`, EXIT.unreachable);
}

/** The request of a call, with its address below the base. */
function requestOf(
  token: string,
  { method, path, input, inQuery = [], wholeBody, hasNoBody = false }: KeylessDefinition,
  members: Members,
): { readonly address: string; readonly init: RequestInit } {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  const init: RequestInit = { method, headers };
  const hasBody = input !== null && !hasNoBody && method !== "GET" && method !== "DELETE";
  const sent = Object.entries(members).filter(([name, value]) =>
    value !== undefined && !path.includes(`:${name}`)
  );
  const query = sent.filter(([name]) => !hasBody || inQuery.includes(name));
  if (hasBody) {
    const body = wholeBody === undefined ? Object.fromEntries(sent) : members[wholeBody.member];
    headers["content-type"] = "application/json";
    init.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  const address = path.replaceAll(/:(\w+)/g, (_, name) => encodeURIComponent(String(members[name])));
  const search = new URLSearchParams(query.map(([name, value]) => [name, String(value)])).toString();
  return { address: `/api${address}${search === "" ? "" : `?${search}`}`, init };
}

function dataOf<Data>(base: string, status: number, text: string): Data {
  const answer = parse(text);
  if (answer?.ok === true) return answer.data as Data;
  const error = answer?.error as { code?: unknown; message?: unknown; details?: unknown } | undefined;
  if (typeof error?.code === "string" && typeof error.message === "string") {
    throw new ServiceRefusal({ code: error.code, message: error.message, details: error.details });
  }
  throw new TaskError(
    `Cannot reach the service at ${base}: another program answers there (status ${status})`,
    EXIT.unreachable,
  );
}

function parse(text: string): { ok?: unknown; data?: unknown; error?: unknown } | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}
