// What the console asks of a form before it reads its fields: who sent it, and how large it is.

import { BODY_COUNTS } from "../../src/process/counts/sent_counts.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";
import { type BodyRules, readText } from "../http/body.ts";
import { invalidMember } from "../http/errors.ts";

/** Whether a browser says that another site made it send this. On plain http, browsers only name the origin. */
export function isFromElsewhere({ headers, url }: Request): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = headers.get("origin");
  if (origin === null) return false;
  const host = headers.get("host") ?? new URL(url).host;
  return !URL.canParse(origin) || new URL(origin).host !== new URL(`http://${host}`).host;
}

/** The fields of a form; null for a body that is not a form. */
export async function readForm(request: Request, rules: BodyRules): Promise<URLSearchParams | null> {
  const type = request.headers.get("content-type") ?? "";
  if (!type.toLowerCase().startsWith("application/x-www-form-urlencoded")) return null;
  const text = await readText(request, rules);
  let fields = 1;
  for (let at = text.indexOf("&"); at >= 0; at = text.indexOf("&", at + 1)) {
    if (++fields <= BODY_LIMITS.formFieldsMax) continue;
    BODY_COUNTS.refused.fields += 1;
    throw invalidMember("", `The form has more than ${BODY_LIMITS.formFieldsMax} fields`);
  }
  return new URLSearchParams(text);
}
