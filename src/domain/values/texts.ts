// How much of a text is kept: prompts and responses by bytes, reasons and error codes by characters. Longer ones are
// cut, not refused. Specification, "POST /v1/release" and "Limits"; section 5 of the decisions.
//
// Each text is cut once, by the command that brings it: a cut text is longer than what may be kept, by its mark.

/** The bytes of UTF-8 that are kept of a prompt or a response. */
export const TEXT_BYTES_MAX = 32_768;
/** The characters that are kept of the reason of a release or of a cancel. */
export const REASON_LENGTH_MAX = 500;
/** The characters that are kept of the error code of a release. */
export const ERROR_CODE_LENGTH_MAX = 100;

const CUT_MARK = "…[truncated]";
/** No UTF-16 unit takes more bytes of UTF-8. */
const BYTES_PER_UNIT_MAX = 3;

const encoder = new TextEncoder();

/** A prompt or a response, cut on a character's boundary and marked where it is too long; null for none. */
export function cutText(text: string | null | undefined): string | null {
  if (text === null || text === undefined) return null;
  if (text.length * BYTES_PER_UNIT_MAX <= TEXT_BYTES_MAX) return text;
  const { read } = encoder.encodeInto(text, new Uint8Array(TEXT_BYTES_MAX));
  return read === text.length ? text : text.slice(0, read) + CUT_MARK;
}

/** The first characters of a text, counted in code points; null for none. */
export function cutCharacters(text: string | null, max: number): string | null {
  return text === null || text.length <= max ? text : [...text.slice(0, max * 2)].slice(0, max).join("");
}
