// The statements of the product that the simulated server understands. Each has a name, and is found by the beginning of its
// text. Any other statement is an error with its text, so that a change of the product's SQL is noticed.

import type { Param } from "../../../src/storage/database.ts";
import { AUDIT } from "./statements_audit.ts";
import { ERASURE } from "./statements_erasure.ts";
import { JOURNAL } from "./statements_journal.ts";
import { MEMBERS } from "./statements_nodes.ts";
import { MERGES } from "./statements_merge.ts";
import { READS } from "./statements_read.ts";
import { FAILED_REQUESTS } from "./statements_failed_requests.ts";
import { REFUSALS } from "./statements_refusals.ts";
import { REGISTRY } from "./statements_registry.ts";
import { STORES } from "./statements_stores.ts";
import { RUNS } from "./statements_runs.ts";
import { TREE } from "./statements_tree.ts";
import { STRIPE } from "./statements_stripe.ts";
import { STRIPE_UNHANDLED } from "./statements_stripe_unhandled.ts";
import { WEBHOOKS } from "./statements_webhooks.ts";
import { VIEWS } from "./statements_views.ts";
import type { Lock } from "./locks.ts";
import type { Server, ServerSession } from "./server.ts";
import type { SimTables } from "./tables.ts";
import type { Fields } from "../../support/memory_store.ts";

/** The effect of a writing statement on tables; it may be applied to a copy first. */
export type Effect = (tables: SimTables) => Fields[];

/** What a statement does, and the lock that it waits for. */
export type Statement = { waitsFor?(params: readonly Param[]): Lock } & StatementKind;

type StatementKind =
  | { readonly kind: "read"; run(tables: SimTables, params: readonly Param[]): Fields[] }
  | {
    readonly kind: "write";
    make(params: readonly Param[], session: ServerSession): Effect;
    /** Rows that other nodes may want as well, locked until the transaction ends. */
    locks?(params: readonly Param[]): readonly Lock[];
  }
  | {
    readonly kind: "session";
    run(server: Server, session: ServerSession, params: readonly Param[]): Fields[];
  }
  | {
    readonly kind: "append";
    /** The number of the batch that is in the journal now; null for none. */
    run(tables: SimTables, session: ServerSession, params: readonly Param[]): number | null;
  };

/** A name, a colon and the beginning of a text, with its statement. */
export type Entry = readonly [nameAndStart: string, statement: Statement];

const EVERY: readonly Entry[] = [
  ...[
    ...JOURNAL,
    ...MEMBERS,
    ...REGISTRY,
    ...READS,
    ...MERGES,
    ...ERASURE,
    ...REFUSALS,
    ...FAILED_REQUESTS,
    ...WEBHOOKS,
  ],
  ...TREE,
  ...VIEWS,
  ...AUDIT,
  ...STRIPE,
  ...RUNS,
  ...STRIPE_UNHANDLED,
  ...STORES,
];

const known = new Map<string, Statement>();

/** Finds the statement of a text. */
export function statementOf(text: string): Statement {
  let statement = known.get(text);
  if (statement === undefined) {
    const plain = text.replaceAll(/\s+/g, " ").trim();
    const found = EVERY.find(([nameAndStart]) =>
      plain.startsWith(nameAndStart.slice(nameAndStart.indexOf(": ") + 2))
    );
    if (found === undefined) throw new Error(`Statement not simulated: ${plain}`);
    statement = found[1];
    known.set(text, statement);
  }
  return statement;
}
