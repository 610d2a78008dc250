// Catches what the process logs while a test does something.

import assert from "node:assert/strict";

/** The lines logged meanwhile, parsed; each must be one JSON object. */
export async function linesOf(work: () => unknown) {
  const written: string[] = [];
  const writeSync = Deno.stderr.writeSync;
  Deno.stderr.writeSync = (bytes) => {
    written.push(new TextDecoder().decode(bytes));
    return bytes.byteLength;
  };
  try {
    await work();
  } finally {
    Deno.stderr.writeSync = writeSync;
  }
  return written.map((line) => {
    assert.ok(line.endsWith("\n") && line.indexOf("\n") === line.length - 1, line);
    return JSON.parse(line);
  });
}
