// Hashes of secrets, and their comparison in constant time.

import { createHash, timingSafeEqual } from "node:crypto";

/** The SHA-256 of a secret text, in hex. */
export function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Whether two secrets are equal, in time that does not depend on where they differ. */
export function equalsSecret(presented: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(presented), digest(expected));
}
