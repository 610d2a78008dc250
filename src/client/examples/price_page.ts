// A price page: what each call costs in credits, and what each plan has of them. A public key without a token suffices.

import process from "node:process";
import { createClient, type Rate } from "holdfast-client";

const { HOLDFAST_URL = "http://127.0.0.1:8000", HOLDFAST_PUBLIC_KEY = "" } = process.env;
const holdfast = createClient({ apiKey: HOLDFAST_PUBLIC_KEY, baseUrl: HOLDFAST_URL });

/** Your words for the parts of a rate. */
const PARTS: readonly (readonly [part: keyof Rate, what: string, per: number])[] = [
  ["perCall", "a call", 1],
  ["perImage", "an image", 1],
  ["perMillionInputTokens", "1,000 tokens of your text", 1000],
  ["perMillionOutputTokens", "1,000 tokens of the answer", 1000],
  ["perSecond", "a second", 1],
];

function textOf(rate: Rate): string {
  const parts = PARTS.flatMap(([part, what, per]) => {
    const credits = rate[part];
    return typeof credits === "number" ? [`${credits / per} credits for ${what}`] : [];
  });
  return `${rate.event}: ${parts.join(", ")}`;
}

const [plans, rates] = await Promise.all([holdfast.plans.list(), holdfast.plans.rates()]);
for (const { name, limits } of plans) {
  const inCredits = limits.find(({ unit }) => unit === "credits");
  console.log(`${name}: ${inCredits === undefined ? "no credits" : `${inCredits.quota} credits`}`);
}
console.log(rates.length === 0 ? "Nothing is sold by credits." : rates.map(textOf).join("\n"));
