// Structured logs: one JSON line each on standard error, with a level, a message and fields. No key, token,
// prompt or end-user id is ever a field.

/** Levels, from the least urgent. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields of a log line. */
type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

const encoder = new TextEncoder();
let lowest = LOG_LEVELS.indexOf("info");
let traceId: () => string | undefined = () => undefined;

/** Sets the lowest level that is written, before the service starts. */
export function setLogLevel(level: LogLevel): void {
  lowest = LOG_LEVELS.indexOf(level);
}

/** Sets the source of the current trace, which a line names. */
export function setLogTrace(find: () => string | undefined): void {
  traceId = find;
}

/** Whether lines of a level are written. */
export function isLogged(level: LogLevel): boolean {
  return LOG_LEVELS.indexOf(level) >= lowest;
}

/** Writes a log line. */
export function log(level: LogLevel, message: string, fields: LogFields = {}): void {
  if (!isLogged(level)) return;
  Deno.stderr.writeSync(encoder.encode(lineOf(level, message, fields) + "\n"));
}

/**
 * Returns the error for a response body that ends before its time. The runtime writes such an error to standard error by
 * itself, an `Error` with its stack, so the error is a log line.
 */
export function brokenBody(message: string, fields: LogFields = {}): string {
  return lineOf("warn", message, fields);
}

function lineOf(level: LogLevel, message: string, fields: LogFields): string {
  const at = new Date().toISOString();
  return masked(JSON.stringify({ at, level, message, ...fields, traceId: traceId() }));
}

/** API keys, tokens in headers and addresses, and passwords in addresses. */
const SECRETS = [
  /\b[sp]k_(?:live|test)_\w+/g,
  /\bsk-[\w-]{8,}/g,
  /(?<=\bBearer\s+)[^\s"\\]+/gi,
  /(?<=[?&]token=)[^\s"&\\]+/g,
  /(?<=\/\/[^\s/:@"]*:)[^\s/@"]+(?=@)/g,
];

/** Masks secrets in a message of the database or of a library. */
export function masked(line: string): string {
  return SECRETS.reduce((text, secret) => text.replace(secret, "***"), line);
}

/** Returns the message of a thrown value, with its causes. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${messageOf(error.cause)}`;
}
