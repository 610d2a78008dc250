// Structured logs: one JSON line each on standard error, with a level, a message and fields. No key, token,
// prompt or end-user id is ever a field.

type Level = "info" | "warn" | "error";

/** Fields of a log line. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

const encoder = new TextEncoder();

/** Writes a log line. */
export function log(level: Level, message: string, fields: LogFields = {}): void {
  const line = JSON.stringify({ at: new Date().toISOString(), level, message, ...fields });
  Deno.stderr.writeSync(encoder.encode(line + "\n"));
}

/** The message of whatever was thrown, with its causes. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${messageOf(error.cause)}`;
}
