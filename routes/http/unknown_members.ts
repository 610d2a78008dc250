// Members that a metering call does not have. A common mistake is refused; any other member is answered with a warning,
// so that nothing a caller sends is ignored in silence.

import type { Slips } from "../contract/slips.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { invalidMember } from "./errors.ts";

/** Where the checked input of a call keeps its warnings. No member of a request can have this name. */
const WARNINGS = Symbol("warnings");

const NONE: readonly string[] = [];

/**
 * Refuses common mistakes among unknown members, and adds a warning for each other one to the checked input.
 *
 * @param unknown names and values; a null value is the same as an absent member
 * @param check returns the checked input; runs after the common mistakes are refused
 */
export function checkUnknown(
  slips: Slips,
  unknown: ReadonlyMap<string, unknown>,
  check: () => unknown,
): unknown {
  const names = [...unknown].filter(([, value]) => value !== null && value !== undefined).map(([name]) =>
    name
  );
  for (const name of names) {
    const right = slips(name);
    if (right !== null) throw invalidMember(name, `unknown parameter; use ${right}`);
  }
  const input = check();
  return names.length === 0 ? input : { ...input as object, [WARNINGS]: warningsOf(names) };
}

/** Returns the warnings of a checked input. */
export function warningsAbout(input: object): readonly string[] {
  return (input as { readonly [WARNINGS]?: readonly string[] })[WARNINGS] ?? NONE;
}

/** Returns warnings together, or undefined without any: the member is then absent from the answer. */
export function joined(...lists: readonly (readonly string[])[]): string[] | undefined {
  const all = lists.flat();
  return all.length === 0 ? undefined : all;
}

function warningsOf(names: readonly string[]): string[] {
  const { unknownMembersShownMax: most, unknownMemberLengthMax: length } = REQUEST_LIMITS;
  const shown = names.slice(0, most).map((name) =>
    `unknown_member: ${name.length <= length ? name : `${name.slice(0, length).toWellFormed()}...`}`
  );
  return names.length <= most ? shown : [...shown, `unknown_members_left_out: ${names.length - most}`];
}
