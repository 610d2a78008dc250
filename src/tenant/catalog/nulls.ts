// null in a document: for an optional member it is the same as leaving it out, as in every call.

import type { z } from "zod";
import { isObject } from "./loose.ts";

/** Returns a document without the optional members that are null, except where their schema gives null a meaning. */
export function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  const { def } = schema._zod as (z.core.$ZodTypes)["_zod"];
  switch (def.type) {
    case "optional":
    case "nullable":
      return withoutNulls(def.innerType, value);
    case "array":
      return Array.isArray(value) ? value.map((each) => withoutNulls(def.element, each)) : value;
    case "record":
      return eachMember(value, () => def.valueType);
    case "object":
      return eachMember(value, (name) => Object.hasOwn(def.shape, name) ? def.shape[name] : undefined);
    default:
      return value;
  }
}

function eachMember(value: unknown, schemaOf: (name: string) => z.core.$ZodType | undefined): unknown {
  if (!isObject(value)) return value;
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const schema = schemaOf(name);
    if (schema === undefined) return [[name, member]];
    return member === null && isLeftOut(schema) ? [] : [[name, withoutNulls(schema, member)]];
  });
  return Object.fromEntries(members);
}

/** Whether a member may be left out, and has no null of its own. */
function isLeftOut(schema: z.core.$ZodType): boolean {
  const { optin, def } = (schema as z.core.$ZodTypes)._zod;
  return optin === "optional" && !(def.type === "optional" && def.innerType._zod.def.type === "nullable");
}
