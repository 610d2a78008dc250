// The text of a user's key: "uk", the mode, the secret, the realm and the key's id, which names its user. So any process
// finds the owner of the workspace that the key belongs to without a lookup; whether the key is valid is decided there.
// Nothing in the text is trusted before the hash of the secret was compared.

import type { Mode } from "../../actors/port.ts";
import { ID_PREFIX, ownerOf, type UserKey } from "../domain/values/ids.ts";
import { hashOf } from "../process/secrets/hash.ts";
import { randomText } from "../process/secrets/random.ts";

/** A key as a caller presents it, not checked yet. */
export interface PresentedKey {
  readonly realm: number;
  readonly mode: Mode;
  readonly id: string;
  /** The number of the user for whom it was made; after a merge that of an alias. */
  readonly owner: UserKey;
  readonly hash: string;
}

const SECRET_LENGTH = 32;
const PREFIX_LENGTH = 12;
const TEXT = /^uk_(live|test)_([0-9A-Za-z]{32})_([1-9a-z][0-9a-z]{0,6})_([0-9a-z]{1,11}_[0-9a-z]{20})$/;
/** The form of the key id under which processes pass a presented key on. */
const PASSED = /^user:(live|test):(\d+):(uky_[0-9a-z_]+):([0-9a-f]{64})$/;

/** Makes the secret of a new key, the hash of it, and the beginning of the text, which people see. */
export function newEndUserKey(mode: Mode): { secret: string; hash: string; prefix: string } {
  const secret = randomText(SECRET_LENGTH);
  return { secret, hash: hashOf(secret), prefix: prefixOfUserKey(`uk_${mode}_${secret}`) };
}

/** The beginning of a key's text, which people see. */
export function prefixOfUserKey(text: string): string {
  return text.slice(0, PREFIX_LENGTH);
}

/** The text of a key. */
export function textOfKey(mode: Mode, secret: string, realm: number, id: string): string {
  return `uk_${mode}_${secret}_${realm.toString(36)}_${id.slice(ID_PREFIX.endUserKey.length)}`;
}

/** Reads the text of a key; null for any other text. */
export function readKeyText(text: string): PresentedKey | null {
  const [, mode, secret, realm, id] = TEXT.exec(text) ?? [];
  if (mode === undefined || secret === undefined || realm === undefined) return null;
  return presented(mode, parseInt(realm, 36), `${ID_PREFIX.endUserKey}${id}`, hashOf(secret));
}

/** The key id under which processes pass a presented key on. */
export function passedKeyId({ mode, realm, id, hash }: PresentedKey): string {
  return `user:${mode}:${realm}:${id}:${hash}`;
}

/** Reads a key id of `passedKeyId`; null for any other. */
export function readPassedKeyId(keyId: string): PresentedKey | null {
  const [, mode, realm, id, hash] = PASSED.exec(keyId) ?? [];
  if (mode === undefined || id === undefined || hash === undefined) return null;
  return presented(mode, Number(realm), id, hash);
}

function presented(mode: string, realm: number, id: string, hash: string): PresentedKey | null {
  const owner = ownerOf("endUserKey", id);
  return owner === null ? null : { mode: mode as Mode, realm, id, owner, hash };
}
