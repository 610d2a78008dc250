// What the calls of this folder use of a running term.

import type { Directory } from "../../actors/directory.ts";
import type { IdSource } from "../domain/values/ids.ts";
import type { Features } from "../process/features.ts";
import type { Database } from "../storage/database.ts";
import type { InCell } from "../storage/nodes/cell_store.ts";

export interface PeopleWorld {
  readonly term: {
    readonly directory: Pick<Directory, "runById">;
    /** Resolves when the tables have every earlier decision. */
    flush(): Promise<void>;
  };
  readonly database: Database;
  /** Runs a write outside of the journal, in a transaction that only the owner of the cell can make. */
  readonly inCell: InCell;
  readonly ids: IdSource;
  readonly features: Pick<Features, "privacySecret">;
}
