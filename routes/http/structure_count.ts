// Counts the structure of JSON in its bytes, before they are parsed: brackets, braces and commas outside of strings. A body
// of 32 MiB may have 11 million empty arrays, which would take ten seconds to parse and a gigabyte of memory.

import { BODY_COUNTS } from "../../src/process/counts/sent_counts.ts";
import { invalidMember } from "./errors.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;

/** Counts piece by piece. */
export class StructureCount {
  readonly #max: number;
  /** The structure so far. */
  count = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(max: number) {
    this.#max = max;
  }

  /** Counts the next piece; refuses it above the maximum. */
  add(bytes: Uint8Array): void {
    let count = this.count;
    let isInString = this.#isInString;
    let isEscaped = this.#isEscaped;
    const { length } = bytes;
    for (let index = 0; index < length; index++) {
      let byte = bytes[index] as number;
      if (isInString) {
        if (isEscaped) {
          isEscaped = false;
          continue;
        }
        // Most bytes are those of texts: a loop of their own takes half the time.
        while (byte !== QUOTE && byte !== BACKSLASH && ++index < length) byte = bytes[index] as number;
        isEscaped = byte === BACKSLASH;
        isInString = byte !== QUOTE;
      } else if (byte === QUOTE) isInString = true;
      else if (byte === COMMA || byte === BRACKET || byte === BRACE) count += 1;
    }
    this.count = count;
    this.#isInString = isInString;
    this.#isEscaped = isEscaped;
    if (count <= this.#max) return;
    BODY_COUNTS.refused.structure += 1;
    throw invalidMember("", `The body has more than ${this.#max} arrays, objects and commas`);
  }
}
