// Every file of the domain has its test at the same path, or shares a test that is named here.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { sourceFiles } from "../structure/sources.ts";

/** Files that hold types or lists alone, and helpers that are proved through the rule that they are part of. */
const SHARED: Readonly<Record<string, string>> = {
  "command": "decide",
  "catalog/feature": "plans/features",
  "state/context": "decide",
  "values/refusal": "decide",
  "state/result": "decide",
  "credits/balances": "state/credit",
  "credits/issue": "credits/grant",
  "credits/ledger": "credits/wallet",
  "credits/rollover": "includes/settle",
  "credits/revoke": "credits/grant",
  "includes/records": "includes/settle",
  "includes/sources": "includes/settle",
  "merging/merge_included": "includes/settle",
  "merging/merge_report": "merging/merge",
  "state/event": "metering/track",
  "catalog/rate_row": "pricing/credits",
  "metering/unrated": "metering/rates",
  "metering/explain_text": "metering/explain",
  "metering/explanation": "metering/explain",
  "metering/final_parts": "metering/commit",
  "state/generation": "metering/generate",
  "state/hold_text": "state/reservation_book",
  "metering/record_event": "metering/prompt_log",
  "metering/settle_charge": "metering/commit",
  "metering/settle_lines": "metering/commit",
  "state/outbox": "state/message",
  "state/work": "fold",
  "fold_plans": "fold",
  "messages/record": "state/message",
  "plans/cancel": "plans/subscribe",
  "state/top_up": "credits/top_up",
  "credits/top_up_setting": "credits/top_up",
  "credits/top_up_work": "credits/top_up",
  "stripe/answer_top_up": "stripe/answer_message",
  "state/shared_values": "state/subscription",
  "state/text_room": "state/reservation_book",
  "state/end_user_key": "accounts/end_user_keys",
  "state/overage": "metering/overage",
  "state/share": "accounts/shares",
  "state/summary": "plans/summary",
  "stripe/answer_sale": "stripe/answer_message",
  "stripe/facts": "stripe/answer_message",
  "stripe/fields": "stripe/message",
  "stripe/money": "stripe/answer_message",
  "stripe/outcome": "stripe/answer_message",
};

Deno.test("every file of the domain has its test", async () => {
  const names = (await sourceFiles("src/domain")).map((path) =>
    path.replace(/^src\/domain\/(.*)\.ts$/, "$1")
  );
  const hasTest = (name: string) => existsSync(new URL(`${name}_test.ts`, import.meta.url));
  assert.deepEqual(names.filter((name) => !hasTest(SHARED[name] ?? name)), []);
  assert.deepEqual(Object.keys(SHARED).filter((name) => !names.includes(name) || hasTest(name)), []);
});
