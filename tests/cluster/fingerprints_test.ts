// Settings in which nodes must agree: a new node that differs learns which setting, and no secret can be learned from it.

import { NO_STRIPE_KEYS } from "../../src/process/stripe_keys.ts";
import assert from "node:assert/strict";
import { agrees, fingerprintsOf } from "../../src/cluster/fingerprints.ts";
import type { Features } from "../../src/process/features.ts";
import { ConfigError } from "../../src/process/settings.ts";
import type { NodeRow } from "../../src/storage/nodes/node_store.ts";

const FEATURES: Features = {
  privacySecret: "p",
  exportSecret: "e",
  publicUrl: "https://a",
  modelServer: null,
  anthropicServer: null,
  upstreams: [],
  allowsPrivateWebhooks: false,
  stripe: NO_STRIPE_KEYS,
};
const ADMIN_TOKEN = "a";
const OWN = fingerprintsOf("secret", ADMIN_TOKEN, FEATURES);

function memberWith(fingerprints: Readonly<Record<string, string>>): NodeRow {
  return {
    term: 1,
    address: null,
    share: 1,
    fingerprints,
    registryVersion: 0,
    livedMs: 0,
    silentMs: 0,
    hasEnded: false,
  };
}

Deno.test("nodes with the same settings agree, and the first node always may serve", () => {
  assert.equal(agrees(OWN, []), true);
  assert.equal(agrees(OWN, [memberWith(fingerprintsOf("secret", ADMIN_TOKEN, FEATURES))]), true);
});

for (
  const [variable, own] of [
    ["HOLDFAST_ADMIN_TOKEN", fingerprintsOf("secret", "b", FEATURES)],
    ["HOLDFAST_ADMIN_TOKEN", fingerprintsOf("secret", null, FEATURES)],
    ["HOLDFAST_PRIVACY_SECRET", fingerprintsOf("secret", ADMIN_TOKEN, { ...FEATURES, privacySecret: "q" })],
    ["HOLDFAST_PRIVACY_SECRET", fingerprintsOf("secret", ADMIN_TOKEN, { ...FEATURES, privacySecret: null })],
    ["ANALYTICS_EXPORT_SECRET", fingerprintsOf("secret", ADMIN_TOKEN, { ...FEATURES, exportSecret: "f" })],
    [
      "HOLDFAST_WEBHOOKS_ALLOW_PRIVATE",
      fingerprintsOf("secret", ADMIN_TOKEN, { ...FEATURES, allowsPrivateWebhooks: true }),
    ],
    ["HOLDFAST_PUBLIC_URL", fingerprintsOf("secret", ADMIN_TOKEN, { ...FEATURES, publicUrl: "https://b" })],
  ] as const
) {
  Deno.test(`a newcomer of another ${variable} ends with its name (${own[variable]})`, () => {
    assert.throws(
      () => agrees(own, [memberWith(OWN)]),
      (error) => error instanceof ConfigError && error.message.includes(variable),
    );
  });
}

Deno.test("a new node with another schema or protocol waits, even if its settings differ too", () => {
  for (const name of ["schema", "protocol"]) {
    assert.equal(agrees(OWN, [memberWith({ ...OWN, [name]: "another" })]), false);
    const both = { ...OWN, [name]: "another", HOLDFAST_ADMIN_TOKEN: "other" };
    assert.equal(agrees(OWN, [memberWith(OWN), memberWith(both)]), false);
  }
});

Deno.test("a setting that an earlier node does not know is not a difference", () => {
  const { HOLDFAST_PUBLIC_URL: _, ...fewer } = OWN;
  assert.equal(agrees(OWN, [memberWith(fewer)]), true);
});

Deno.test("a fingerprint holds no secret, depends on the database's own, and differs by variable", () => {
  const secret = "s3cret-value";
  const one = fingerprintsOf("x", secret, { ...FEATURES, privacySecret: secret, exportSecret: secret });
  const other = fingerprintsOf("y", secret, { ...FEATURES, privacySecret: secret, exportSecret: secret });
  assert.ok(!JSON.stringify(one).includes(secret));
  assert.notEqual(one.HOLDFAST_ADMIN_TOKEN, other.HOLDFAST_ADMIN_TOKEN);
  assert.notEqual(one.HOLDFAST_ADMIN_TOKEN, one.HOLDFAST_PRIVACY_SECRET);
});
