// Bugs in the handling of Stripe's messages, planted one at a time like those in `bugs.ts`.

import type { Fields } from "../../support/memory_store.ts";
import { SimTables } from "../database/tables.ts";
import { type PlantedBug, replace } from "./plant.ts";

/** Keeps only a part of each message. */
function keepOnly(isKept: (tables: SimTables, table: string, row: Fields) => boolean): () => void {
  return replace(SimTables.prototype, "put", (put) =>
    function (this: SimTables, table, key, row) {
      if (isKept(this, table, row)) put.call(this, table, key, row);
    });
}

/** Removes no row of a table. */
function neverRemoved(table: string): () => void {
  return replace(
    SimTables.prototype,
    "remove",
    (remove) =>
      function (this: SimTables, from, isWanted, limit) {
        return from === table ? 0 : remove.call(this, from, isWanted, limit);
      },
  );
}

/** Whether a refund is of something that is known. */
function isOfKnown(tables: SimTables, { payment }: Fields): boolean {
  return tables.list("stripe_payments", (row) => row.payment === payment).length > 0;
}

export const STRIPE_BUGS: readonly PlantedBug[] = [
  {
    name: "a refund looks only for what is known when it comes",
    stripe: true,
    plant: () => keepOnly((tables, table, row) => table !== "stripe_refunds" || isOfKnown(tables, row)),
  },
  {
    name: "a dispute is not kept",
    stripe: true,
    plant: () => keepOnly((_, table) => table !== "stripe_disputes"),
  },
  {
    name: "what a sale was paid by is not kept",
    stripe: true,
    plant: () => keepOnly((_, table) => table !== "stripe_payments"),
  },
  {
    name: "the newest message of a subscription is not remembered",
    stripe: true,
    plant: () => keepOnly((_, table) => table !== "stripe_subscriptions"),
  },
  {
    name: "an erasure leaves what is kept of purchases",
    stripe: true,
    plant: () => neverRemoved("stripe_purchases"),
  },
  {
    name: "an erasure leaves what is kept of subscriptions",
    stripe: true,
    plant: () => neverRemoved("stripe_subscriptions"),
  },
];
