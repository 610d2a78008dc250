// Calls about all databases of a world: lists of workspaces, apps and databases, and new workspaces, on a database by name or on any.

import type { Random } from "../model/random.ts";
import type { Client } from "./clients.ts";
import type { SimRequest } from "./history.ts";
import type { Tenant } from "./tenants.ts";
import { BUYING } from "./top_ups.ts";

/** In the place of a tenant: the calls are about none. */
export const NOBODY: Tenant = { ...BUYING, no: 0, workspaceId: "", appId: "", keyId: "", key: "", realm: 0 };

const CREATED_MAX = 20;

/** The administrator of a world with several databases. */
export class Everywhere {
  readonly #random: Random;
  readonly #names: readonly string[];
  #created = 0;

  constructor(random: Random, names: readonly string[]) {
    this.#random = random;
    this.#names = names;
  }

  next(): { readonly client: Client; readonly request: SimRequest } {
    const random = this.#random;
    const client = { tenant: NOBODY, bearer: "" };
    const op = random.weighted({ listWorkspaces: 4, listApps: 2, listStores: 2, createWorkspace: 1 });
    if (op !== "createWorkspace" || ++this.#created > CREATED_MAX) {
      return { client, request: { op: op === "createWorkspace" ? "listWorkspaces" : op, input: {} } };
    }
    const store = random.chance(0.5) ? { store: random.pick(this.#names) } : {};
    return { client, request: { op, input: { name: "Created", ...store } } };
  }
}
