// Top-ups: none is paid twice, each that took money has its one grant, and no other has any. Erased users count too: their
// rows are gone, and their history is not.

import type { CreditBalance } from "../../../src/domain/state/credit.ts";
import type { TopUpIntent } from "../../../src/domain/state/top_up.ts";
import type { SimTopUps } from "../top_ups.ts";
import type { Checker } from "../watch.ts";

/** Looks at every durable turn, and at the end at what Stripe took; nothing in a world without top-ups. */
export function topUpsChecker(topUps: SimTopUps | null): Checker {
  const intents = new Map<string, TopUpIntent>();
  const grants = new Map<string, CreditBalance[]>();
  return {
    name: "top-ups",
    onTurn({ changes }) {
      for (const { verb, table, row } of changes) {
        if (table === "top_ups") {
          check(intents.get(row.id), row);
          intents.set(row.id, row);
        }
        if (table === "credit_balances" && verb === "append" && row.origin === "topup") {
          grants.set(row.ownRef as string, [...grants.get(row.ownRef as string) ?? [], row]);
        }
      }
    },
    atEnd() {
      if (topUps === null) return;
      const { payments, intents: objects } = topUps.stripe;
      for (const { id, status, terms } of intents.values()) {
        const own = [...objects.values()].filter(({ metadata }) => metadata.holdfast_intent === id);
        const taken = payments.filter((payment) => own.some((object) => object.id === payment));
        if (taken.length > 1) throw new Error(`${id} was paid by ${taken.join(" and ")}`);
        const given = grants.get(id) ?? [];
        if ((taken.length === 1) !== (status === "paid") || given.length !== taken.length) {
          throw new Error(`${id} is ${status} with ${taken.length} payments and ${given.length} grants`);
        }
        const [grant] = given;
        if (grant !== undefined && grant.initial !== terms.units) {
          throw new Error(`${id} granted another amount`);
        }
      }
      for (const ref of grants.keys()) {
        if (!intents.has(ref)) throw new Error(`${ref} was granted and is no top-up`);
      }
    },
  };
}

/** An id of a payment, once stored, is never another one; what was called off is not confirmed. */
function check(
  before: TopUpIntent | undefined,
  { id, paymentIntentId, isCalledOff, isConfirmed }: TopUpIntent,
): void {
  const known = before?.paymentIntentId ?? null;
  if (known !== null && known !== paymentIntentId) {
    throw new Error(`${id} had ${known}, and then ${paymentIntentId}`);
  }
  if (isCalledOff && isConfirmed) throw new Error(`${id} was called off, and then confirmed`);
}
