// How much of a text is kept: prompts and responses by bytes, reasons and error codes by characters. Longer texts are cut,
// not refused. The command that receives a text cuts it, once: a cut prompt is longer than the bound, by its suffix.

/** The bytes of UTF-8 that are kept of a prompt or a response. */
export const TEXT_BYTES_MAX = 32_768;
/** The characters that are kept of the reason of a release or of a cancel. */
export const REASON_LENGTH_MAX = 500;
/** The characters that are kept of the error code of a release. */
export const ERROR_CODE_LENGTH_MAX = 100;

const CUT_MARK = "…[truncated]";
/** The most bytes of UTF-8 that one UTF-16 unit takes. */
const BYTES_PER_UNIT_MAX = 3;

const encoder = new TextEncoder();

/** Cuts a prompt or a response on a character's boundary and adds the suffix, where it is too long; null for none. */
export function cutText(text: string | null | undefined): string | null {
  if (text === null || text === undefined) return null;
  if (text.length * BYTES_PER_UNIT_MAX <= TEXT_BYTES_MAX) return text;
  const { read } = encoder.encodeInto(text, new Uint8Array(TEXT_BYTES_MAX));
  return read === text.length ? text : text.slice(0, read) + CUT_MARK;
}

/** Returns the first characters of a text, counted in code points; null for none. */
export function cutCharacters(text: string | null, max: number): string | null {
  return text === null || text.length <= max ? text : [...text.slice(0, max * 2)].slice(0, max).join("");
}
