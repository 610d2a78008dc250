// Changes of the registry as clients make them, through any node, and calls that show which state is in force: keys are
// made and revoked, a catalog gets plan after plan, caps are set. One change of a kind is under way at a time, so that what
// must be in force is known.

import type { Random } from "../model/random.ts";
import type { Call, SimRequest } from "./history.ts";
import type { Client } from "./clients.ts";
import type { Tenant } from "./tenants.ts";

/** Plans of this name and a number are what changes of a catalog add. */
const MARKER = "marker-";

const KEYS_MAX = 8;

/** The next call of a client, and its node. */
interface CanaryRequest {
  readonly client: Client;
  readonly request: SimRequest;
}

interface KnownKey {
  readonly keyId: string;
  readonly key: string;
  isRevoking: boolean;
}

/** Requests to the canaries of a world: the first has keys and a catalog that change, the others have caps. */
export class Canary {
  readonly #random: Random;
  readonly #first: Tenant;
  readonly #capped: readonly Tenant[];
  readonly #keys: KnownKey[];
  /** The version in the last answer, and the last marker that was reported as in force. */
  #version = 1;
  #markers = 0;
  readonly #caps = new Map<Tenant, number | null>();
  readonly #busy = new Set<string>();

  constructor(random: Random, [first, ...capped]: readonly Tenant[]) {
    this.#random = random;
    this.#first = first as Tenant;
    this.#capped = capped;
    this.#keys = [{ keyId: this.#first.keyId, key: this.#first.key, isRevoking: false }];
  }

  next(): CanaryRequest {
    const random = this.#random;
    const kind = random.weighted({ catalog: 1, cap: 1, createKey: 1, revokeKey: 1, plans: 5, track: 6 });
    const reader = { tenant: this.#first, bearer: random.pick(this.#keys.slice(-4)).key };
    if (kind === "catalog" && this.#begin("catalog")) {
      // What is promoted stays in force in test mode, so its readers see the same plans.
      const isPromoting = this.#first.caps.mode === "test" && this.#markers > 0 && random.chance(0.5);
      return isPromoting ? this.#promoteCatalog() : this.#applyCatalog();
    }
    if (kind === "cap" && this.#capped.length > 0) {
      const tenant = random.pick(this.#capped);
      if (this.#begin(`cap ${tenant.no}`)) return this.#setCap(tenant);
    }
    if (kind === "createKey" && this.#keys.length < KEYS_MAX && this.#begin("createKey")) {
      return {
        client: reader,
        request: { op: "createKey", input: { class: "secret", mode: this.#first.caps.mode } },
      };
    }
    if (kind === "revokeKey" && this.#keys.length > 1) return this.#revoke();
    if (kind === "track" && this.#capped.length > 0) {
      const tenant = random.pick(this.#capped);
      return { client: { tenant, bearer: tenant.key }, request: { op: "track", input: TRACKED } };
    }
    return { client: reader, request: { op: "plans", input: {} } };
  }

  /** Takes the outcome of a call. */
  observe({ tenant, request: { op, input }, answer }: Call): void {
    const data = answer?.model.data ?? {};
    const details = answer?.model.details as { version?: unknown } | undefined;
    switch (op) {
      case "applyCatalog":
      case "promoteCatalog": {
        this.#busy.delete("catalog");
        const version = data["version"] ?? details?.version;
        // Where another attempt of the same change came first, the document is sent again under the new version.
        if (typeof version === "number") this.#version = Math.max(this.#version, version);
        if (op === "applyCatalog" && answer?.status === 200) this.#markers = markersOf(input);
        return;
      }
      case "setCap":
        this.#busy.delete(`cap ${tenant.no}`);
        if (answer?.status === 200) this.#caps.set(tenant, input["operationCap"] as number | null);
        return;
      case "createKey":
        this.#busy.delete("createKey");
        if (answer?.status === 200) {
          this.#keys.push({ keyId: String(data["keyId"]), key: String(data["key"]), isRevoking: false });
        }
        return;
    }
  }

  #begin(what: string): boolean {
    if (this.#busy.has(what)) return false;
    this.#busy.add(what);
    return true;
  }

  #applyCatalog(): CanaryRequest {
    const { catalog, key } = this.#first;
    const [model] = catalog.plans;
    const added = Array.from({ length: this.#markers + 1 }, (_, index) => ({
      ...model,
      id: `${MARKER}${index + 1}`,
      name: `Marker ${index + 1}`,
    }));
    const input = { ...catalog, plans: [...catalog.plans, ...added], expectedVersion: this.#version };
    return { client: { tenant: this.#first, bearer: key }, request: { op: "applyCatalog", input } };
  }

  #promoteCatalog(): CanaryRequest {
    const client = { tenant: this.#first, bearer: this.#first.key };
    return { client, request: { op: "promoteCatalog", input: {} } };
  }

  #setCap(tenant: Tenant): CanaryRequest {
    const operationCap = (this.#caps.get(tenant) ?? null) === null ? 0 : null;
    return { client: { tenant, bearer: tenant.key }, request: { op: "setCap", input: { operationCap } } };
  }

  #revoke(): CanaryRequest {
    const known = this.#random.pick(this.#keys);
    known.isRevoking = true;
    const { keyId, key } = known;
    return { client: { tenant: this.#first, bearer: key }, request: { op: "revokeKey", input: { keyId } } };
  }
}

const TRACKED = { userId: "canary", event: "image.render", quantity: 1 };

/** How many markers a catalog, or an answer that lists plans, has. */
export function markersOf(from: unknown): number {
  return JSON.stringify(from).split(`"${MARKER}`).length - 1;
}
