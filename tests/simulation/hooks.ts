// What a world changes of the product from outside while it runs.

import { CELL_LIMITS } from "../../src/process/limits.ts";
import type { Random } from "../model/random.ts";

/** In most worlds a newcomer gets its cells soon: a world lasts less than a minute, and most nodes live for seconds. */
export function hurry(random: Random): () => void {
  const limits = CELL_LIMITS as { settledMs: number };
  const { settledMs } = limits;
  limits.settledMs = random.pick([300, 1_500, settledMs]);
  return () => {
    limits.settledMs = settledMs;
  };
}

/**
 * The product's log goes nowhere but here.
 *
 * @param hear receives each line, its text, and whether it says that something is wrong
 */
export function hearLog(hear: (isError: boolean, line: string, text: string) => void): () => void {
  const { writeSync } = Deno.stderr;
  const decoder = new TextDecoder();
  Deno.stderr.writeSync = (bytes) => {
    const line = decoder.decode(bytes);
    const { level, message, error = "" } = JSON.parse(line) as Record<string, string>;
    // A process must have nothing of a new cell in memory: it would be older than the tables.
    hear(level === "error" || error.includes("is still in memory"), line, `${message} ${error}`);
    return bytes.length;
  };
  return () => {
    Deno.stderr.writeSync = writeSync;
  };
}
