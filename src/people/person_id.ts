// Ids of people. They contain no time and all look alike: the stand-in id of a person without a row must look like any
// other, or an answer would show who opted out.

import { createHash, createHmac } from "node:crypto";
import { ID_PREFIX, type IdSource } from "../domain/values/ids.ts";

const DIGITS = "0123456789abcdefghijklmnopqrstuv";
const UNIQUE_LENGTH = 20;

export function newPersonId(ids: IdSource): string {
  return personIdOf(createHash("sha256").update(ids.next("person")).digest());
}

/** Returns a stable stand-in id for a distinct id without a person. */
export function standInPersonId(secret: string, realm: number, distinctId: string): string {
  return personIdOf(
    createHmac("sha256", secret).update(JSON.stringify(["person", realm, distinctId])).digest(),
  );
}

function personIdOf(digest: Uint8Array): string {
  return ID_PREFIX.person + [...digest.subarray(0, UNIQUE_LENGTH)].map((byte) => DIGITS[byte & 31]).join("");
}
