// The statements that the simulated server understands: those of the product, known by how they begin. A statement that
// nobody described here is an error that names it, so that a change of the product's SQL cannot go unseen.

import type { Param } from "../../../src/storage/database.ts";
import { AUDIT } from "./statements_audit.ts";
import { ERASURE } from "./statements_erasure.ts";
import { JOURNAL } from "./statements_journal.ts";
import { MEMBERS } from "./statements_members.ts";
import { MERGES } from "./statements_merge.ts";
import { READS } from "./statements_read.ts";
import { REFUSALS } from "./statements_refusals.ts";
import { REGISTRY } from "./statements_registry.ts";
import { STRIPE } from "./statements_stripe.ts";
import { WEBHOOKS } from "./statements_webhooks.ts";
import { VIEWS } from "./statements_views.ts";
import type { Lock } from "./locks.ts";
import type { Server, ServerSession } from "./server.ts";
import type { SimTables } from "./tables.ts";
import type { Fields } from "../../support/memory_store.ts";

/** What a writing statement does to tables; it may be done to a copy first. */
export type Effect = (tables: SimTables) => Fields[];

/** A statement by what it needs. */
export type Statement = { waitsFor?(params: readonly Param[]): Lock } & StatementKind;

type StatementKind =
  | { readonly kind: "read"; run(tables: SimTables, params: readonly Param[]): Fields[] }
  | {
    readonly kind: "write";
    make(params: readonly Param[], session: ServerSession): Effect;
    /** Rows that other members may want as well; its transaction holds them until its end. */
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

const EVERY = [
  ...[...JOURNAL, ...MEMBERS, ...REGISTRY, ...READS, ...MERGES, ...ERASURE, ...REFUSALS, ...WEBHOOKS],
  ...VIEWS,
  ...AUDIT,
  ...STRIPE,
];

const known = new Map<string, Statement>();

/** The statement that a text is. */
export function statementOf(text: string): Statement {
  let statement = known.get(text);
  if (statement === undefined) {
    const plain = text.replaceAll(/\s+/g, " ").trim();
    const found = EVERY.find(([start]) => plain.startsWith(start));
    if (found === undefined) throw new Error(`The simulated server does not know: ${plain}`);
    statement = found[1];
    known.set(text, statement);
  }
  return statement;
}
