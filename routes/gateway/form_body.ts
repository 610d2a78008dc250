// Reads the fields of a form with files in its bytes, without a copy of the files. Readers of forms differ in what they make of
// an unusual one, so a form that two servers could read in two ways is refused: the server gets the same bytes.

import { Buffer } from "node:buffer";
import { invalidMember, type Refused } from "../http/errors.ts";
import { forbiddenText, type Members } from "../http/json_body.ts";

/** A part of a form: a field with a text, or a file. */
export interface FormPart {
  readonly name: string;
  /** null for a file. */
  readonly text: string | null;
}

const LINE_END = "\r\n";
const HEAD_BYTES_MAX = 4_096;
/** Bytes of a field: prompts have some thousand. */
const FIELD_BYTES_MAX = 1024 * 1024;
const PARTS_MAX = 200;

/** Returns the boundary of the parts of a form; null for another content type. */
export function boundaryOf(type: string | null): string | null {
  if (type === null || !/^multipart\/form-data\b/i.test(type)) return null;
  const [, quoted, bare] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))\s*$/i.exec(type) ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) throw invalidMember("Content-Type", "must end with the boundary of the form");
  return boundary;
}

/** Lists the parts of a form. */
export function partsOf(bytes: Uint8Array<ArrayBuffer>, boundary: string): FormPart[] {
  const form = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const delimiter = `${LINE_END}--${boundary}`;
  const parts: FormPart[] = [];
  if (!startsAt(form, 0, delimiter.slice(2))) throw malformed();
  for (let at = delimiter.length - 2; !startsAt(form, at, "--");) {
    if (!startsAt(form, at, LINE_END) || parts.length === PARTS_MAX) throw malformed();
    const from = at + 2;
    const bodyAt = form.indexOf(LINE_END + LINE_END, from, "latin1") + 4;
    if (bodyAt < 4 || bodyAt - from > HEAD_BYTES_MAX) throw malformed();
    const end = form.indexOf(delimiter, bodyAt, "latin1");
    if (end < 0) throw malformed();
    parts.push(partOf(form.toString("utf8", from, bodyAt - 4), form.subarray(bodyAt, end)));
    at = end + delimiter.length;
  }
  return parts;
}

function partOf(head: string, body: Buffer): FormPart {
  const lines = head.split(LINE_END);
  const [disposition, ...more] = lines.filter((line) => /^content-disposition:/i.test(line));
  const [, name, rest = ""] =
    /^[^:]*:\s*form-data;\s*name="([^"\\]*)"\s*(?:;(.*))?$/i.exec(disposition ?? "") ?? [];
  const isOdd = lines.some((line) => /^(?:\s|content-transfer-encoding)/i.test(line));
  if (name === undefined || more.length > 0 || isOdd || /(?:^|;)\s*name\b/i.test(rest)) throw malformed();
  const isFile = /(?:^|;)\s*filename\*?=/i.test(rest);
  if (!isFile && body.byteLength > FIELD_BYTES_MAX) throw invalidMember(name, "is too long for a field");
  return { name, text: isFile ? null : body.toString("utf8") };
}

/** Returns the fields of a form as the members of a body: a number and a boolean are texts in a form. */
export function membersOfForm(parts: readonly FormPart[]): Members {
  const members: Members = {};
  for (const { name, text } of parts) {
    if (text === null) continue;
    if (text.includes("\0")) throw forbiddenText(name);
    const isPlain = name === "n"
      ? /^[0-9]{1,9}$/.test(text)
      : name === "stream" && /^(?:true|false)$/.test(text);
    Object.defineProperty(members, name, {
      value: isPlain ? JSON.parse(text.replace(/^0+(?=[0-9])/, "")) : text,
      enumerable: true,
      configurable: true,
    });
  }
  return members;
}

function startsAt(form: Buffer, at: number, text: string): boolean {
  return form.toString("latin1", at, at + text.length) === text;
}

function malformed(): Refused {
  return invalidMember("", "The body is not a plain form: multipart/form-data with named parts");
}
