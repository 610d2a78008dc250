// The rate card on the catalog's page: what calls cost in credits, in the order in which rates are looked at.

import { amountText } from "../parts/format.tsx";
import { Table } from "../parts/table.tsx";
import type { RateDocument, RatePart } from "../../../src/domain/catalog/rate_row.ts";

const PARTS: readonly (readonly [part: RatePart, text: string])[] = [
  ["perCall", "a call"],
  ["perImage", "an image"],
  ["perMillionInputTokens", "a million input tokens"],
  ["perMillionCachedInputTokens", "a million cached input tokens"],
  ["perMillionOutputTokens", "a million output tokens"],
  ["perSecond", "a second"],
  ["perCent", "a cent of cost"],
];

/** The rates of a catalog; nothing without any. */
export function RateCard({ rates }: { rates: readonly RateDocument[] }) {
  if (rates.length === 0) return null;
  return (
    <section class="card">
      <h2>Credits</h2>
      <Table
        rows={rates}
        columns={[
          { head: "Event type", kind: "head", cell: ({ event }) => <code>{event}</code> },
          { head: "Metadata", cell: (rate) => metadataText(rate) },
          { head: "Costs", cell: (rate) => costText(rate) },
        ]}
      />
      <p class="hint">The first row that covers an event is its rate. Its parts are added up.</p>
    </section>
  );
}

function metadataText({ metadata = {} }: RateDocument): string {
  return Object.entries(metadata).map(([name, value]) => `${name}: ${value}`).join(", ") || "any";
}

/** Says "5 credits an image, at least 6 credits". */
function costText(rate: RateDocument): string {
  const parts = PARTS.flatMap(([part, text]) => {
    const credits = rate[part];
    return credits === undefined ? [] : [`${exactText(credits)} ${text}`];
  });
  const { minimum = 0 } = rate;
  return [...parts, ...minimum > 0 ? [`at least ${exactText(minimum)}`] : []].join(", ");
}

/** Credits without rounding. */
function exactText(credits: number): string {
  return Number.isInteger(credits) ? amountText(credits, "credits") : `${credits} credits`;
}
