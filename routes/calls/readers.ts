// Readers: roles of the database for tools that read it.

import type { Database } from "../../src/storage/database.ts";
import {
  createReader,
  listReaders,
  type NoReaders,
  removeReader,
} from "../../src/storage/queries/readers.ts";
import * as contract from "../contract/readers.ts";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { namedStore } from "../http/across_stores.ts";
import { invalidMember, Refused } from "../http/errors.ts";

/** What the calls about readers need of the running service. */
interface ReadersWorld {
  readonly database: Pick<Database, "query" | "transaction" | "url">;
}

const REASONS: Readonly<Record<NoReaders, string>> = {
  embedded: "The embedded store has no readers; they need a database server",
  no_views: "The schema holdfast is missing: let the role of the service create schemas and start it again",
  no_right: "The role of the service may not create roles: grant it CREATEROLE",
};

const endpoint = keylessEndpointsOn<ReadersWorld>();

export const READERS: readonly KeylessEndpoint<ReadersWorld>[] = [
  endpoint(contract.listReaders, async ({ world }) => {
    return success((await listReaders(world.database)).map((name) => ({ name })));
  }, { across: { join: (answers) => answers.flat() } }),
  endpoint(contract.createReader, async ({ world }) => {
    const created = await createReader(world.database);
    if (typeof created === "string") throw new Refused("not_implemented", REASONS[created]);
    return success(created);
  }, {
    across: {
      choose: (source, { store = null }) => {
        if (store === null && !source.isOne) {
          throw invalidMember("store", "is required with several databases");
        }
        return store === null ? undefined : namedStore(source, store);
      },
    },
  }),
  endpoint(contract.removeReader, async ({ world, input: { readerName: name } }) => {
    if (!await removeReader(world.database, name)) {
      throw new Refused("not_found", `Reader not found: ${name}`);
    }
    return success({ name });
  }, {
    across: {
      choose: async (source, { readerName }) => {
        const lists = await Promise.all(source.requireAll().map(({ database }) => listReaders(database)));
        return Math.max(0, lists.findIndex((names) => names.includes(readerName)));
      },
    },
  }),
];
