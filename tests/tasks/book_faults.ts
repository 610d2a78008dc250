// Faults in the books, written by SQL, each with what the proof says of it: wrong sums, what is due too late, marks and
// messages that make no sense.

import { balance, END, event, lines, START } from "./books.ts";

const G = `count 1 user_1 counter "g" of plan "plan_a" from ${START} ms:`;
const H = `count 1 user_1 counter "h" of plan "plan_a" from ${START} ms:`;

const SOLD = `overage 4 user_4 group "sold" of plan "plan_a":`;
const WINDOW = `overage 4 user_4 overage of "sold" from ${START} ms:`;
const SHARE_G = `share 1 user_1 share of group "g" of account 2 from ${START} ms:`;

/** One fault in clean books, and every drift that it makes. */
type Fault = readonly [name: string, sql: string, drifts: readonly string[]];

const SUMS: readonly Fault[] = [
  [
    "a wrong count",
    "update counters set count = 6.750001 where user_key = 1 and group_id = 'g'",
    [`${G} count 6.750001, but open holds 1 + events 4.5 + adjusted 1.25 = 6.75`],
  ],
  [
    "a wrong adjustment",
    "update counters set adjusted = 0 where user_key = 1 and group_id = 'h'",
    [`${H} count 0, but open holds 0 + events 2 + adjusted 0 = 2`],
  ],
  [
    "a lost event line",
    `update events set lines = '${lines(["g", "1.5"])}' where id = 'evt_1'`,
    [`${H} count 0, but open holds 0 + events -0.000001 + adjusted -2 = -2.000001`],
  ],
  [
    "an event counted twice",
    event("evt_9", 1, lines(["g", "3"])),
    [`${G} count 6.75, but open holds 1 + events 7.5 + adjusted 1.25 = 9.75`],
  ],
  [
    "an event of another window",
    `update events set lines = replace(lines, '${START}', '${END}') where id = 'evt_4'`,
    [
      `count 2 user_2 counter "g" of plan "plan_a" from ${START} ms: count 4, but open holds 0 + events 0 + adjusted 0 = 0`,
      `count 2 user_2 counter "g" of plan "plan_a" from ${END} ms: there is no row, but open holds 0 + events 4 + adjusted 0 = 4`,
    ],
  ],
  [
    "an event of another user",
    "update events set user_key = 3 where id = 'evt_4'",
    [
      `count 2 user_2 counter "g" of plan "plan_a" from ${START} ms: count 4, but open holds 0 + events 0 + adjusted 0 = 0`,
      `count 3 user_3 counter "g" of plan "plan_a" from ${START} ms: there is no row, but open holds 0 + events 4 + adjusted 0 = 4`,
    ],
  ],
  [
    "a lost hold",
    "delete from reservations where id = 'rsv_1'",
    [
      `${G} count 6.75, but open holds 0 + events 4.5 + adjusted 1.25 = 5.75`,
      'held 1 user_1 credit balance "crb_1": held 2.5, but open holds took 0',
      'held 1 user_1 credit balance "crb_2": held 1, but open holds took 0',
      `${SHARE_G} count 2.5, but open holds 0 + events 1.5`,
      `share 1 user_1 share of group "h" of account 2 from ${START} ms: count 1, but open holds 0 + events 0`,
      'run 1 user_1 run "run_1": 1 open holds, but there are 0',
      'run 1 user_1 run "run_1": limit "limit_1": count 3, held 1, but open holds 0 + events 2',
      'run 1 user_1 run "run_2": 1 open holds, but there are 0',
    ],
  ],
  [
    "an event that its runs do not count",
    "update events set run_amounts = null where id = 'evt_2'",
    [
      'run 1 user_1 run "run_1": limit "limit_1": count 3, held 1, but open holds 1 + events 0',
      'run 1 user_1 run "run_2": limit "limit_1": count 0.5, held 0, but open holds 0 + events 0',
    ],
  ],
  [
    "a run with a count that no call explains",
    `update runs set limits = replace(limits, '"0.5"', '"0.6"') where id = 'run_2'`,
    ['run 1 user_1 run "run_2": limit "limit_1": count 0.6, held 0, but open holds 0 + events 0.5'],
  ],
  [
    "a lost counter",
    "delete from counters where user_key = 1 and group_id = 'g'",
    [`${G} there is no row, but open holds 1 + events 4.5 + adjusted 0 = 5.5`],
  ],
  [
    "a counter that sold more than its lines",
    "update counters set overage = 3.5 where user_key = 4",
    [`${SOLD} overage 3.5, but open holds 1 + events 2`],
  ],
  [
    "a counter that forgot what it sold",
    "update counters set overage = null where user_key = 4",
    [`${SOLD} overage 0, but open holds 1 + events 2`],
  ],
  [
    "overage that was reported twice",
    `insert into overage_hours values (4, 'sold', 'count', ${START}, ${START}, ${END}, 0.5)`,
    [`${WINDOW} total 2, but events 2, and reported 2 + pending 0.5`],
  ],
  [
    "overage that no event explains",
    "update overage_windows set total = 3, pending = 1.5",
    [`${WINDOW} total 3, but events 2, and reported 1.5 + pending 1.5`],
  ],
  [
    "overage that is reported too late",
    `update overage_windows set due_at_ms = ${START}`,
    [`due 4 user_4 due at ${END} ms, but overage is reported: "sold" at ${START} ms`],
  ],
  [
    "a summary without a counter",
    "update user_summaries set group_id = 'gone' where user_key = 1",
    [`summary 1 user_1 summary: 67 % of "gone" until ${END} ms, but there is no counter`],
  ],
  [
    "a summary of a plan that ended",
    `update users set held_until_ms = ${START} where key = 2`,
    ['summary 2 user_2 summary: group "none", but its user has no plan'],
  ],
  [
    "a summary of nobody",
    "update user_summaries set user_key = 9 where user_key = 2",
    ["summary 9 - summary: there is no such user"],
  ],
  [
    "a wrong share",
    "update shares set count = 2 where group_id = 'g'",
    [`${SHARE_G} count 2, but open holds 1 + events 1.5`],
  ],
  [
    "a share that forgot a reset",
    "update shares set since_ms = 0 where group_id = 'g'",
    [`${SHARE_G} there is no row, but open holds 1 + events 1.5`],
  ],
  [
    "a share that kept a lapsed hold",
    `update reservations set status = 'expired', settled_at_ms = ${END} where id = 'rsv_1'`,
    [
      `${G} count 6.75, but open holds 0 + events 4.5 + adjusted 1.25 = 5.75`,
      'held 1 user_1 credit balance "crb_1": held 2.5, but open holds took 0',
      'held 1 user_1 credit balance "crb_2": held 1, but open holds took 0',
      `${SHARE_G} count 2.5, but open holds 0 + events 1.5`,
      `share 1 user_1 share of group "h" of account 2 from ${START} ms: count 1, but open holds 0 + events 0`,
      'run 1 user_1 run "run_1": 1 open holds, but there are 0',
      'run 1 user_1 run "run_1": limit "limit_1": count 3, held 1, but open holds 0 + events 2',
      'run 1 user_1 run "run_2": 1 open holds, but there are 0',
    ],
  ],
  [
    "a wrong remaining",
    "update credit_balances set remaining = 7 where id = 'crb_1'",
    ['remaining 1 user_1 credit balance "crb_1": remaining 7, but its ledger sums to 7.5'],
  ],
  [
    "an event that is twice in the sums by day",
    "update daily_use_of_users set events = 2 where user_key = 1",
    ["daily_use 1 user_1 sums by day: 2 events for 0.5 cents, but there are 1 for 0.5 cents"],
  ],
  [
    "credits that no event of a day has",
    "update daily_use_of_users set cost_credits = 3 where user_key = 1",
    ["daily_use 1 user_1 sums by day: 1 events for 0.5 cents and 3 credits, but there are 1 for 0.5 cents"],
  ],
  [
    "a mark that is past what was added up",
    "update daily_use_marks set event_id = 'evt_3'",
    ["daily_use 1 user_1 sums by day: 1 events for 0.5 cents, but there are 2 for 1 cents"],
  ],
  [
    "a plan and model with more than their events",
    "update daily_use_parts_of_users set cost_cents = 0.6 where user_key = 1",
    ["daily_use 1 user_1 sums by day, plan and model: 1 events for 0.6 cents, but there are 1 for 0.5 cents"],
  ],
  [
    "a lost ledger row",
    "delete from credit_ledger where id = 'cle_4'",
    ['remaining 1 user_1 credit balance "crb_2": remaining 0, but its ledger sums to 1'],
  ],
  [
    "a wrong held",
    "update credit_balances set held = 2 where id = 'crb_1'",
    ['held 1 user_1 credit balance "crb_1": held 2, but open holds took 2.5'],
  ],
  [
    "a ledger of an unknown balance, also where it sums to zero",
    "insert into credit_ledger select 'x' || id, user_key, 'crb_0', pack_id, delta, reason, null, null, null, at_ms " +
    "from credit_ledger where balance_id = 'crb_2'",
    [
      'unknown_balance 1 user_1 credit balance "crb_0": there is no row, but 2 ledger rows (0) and 0 lines of open holds (0) name it',
    ],
  ],
  [
    "a credit line of an unknown balance",
    "update reservations set credits = replace(credits, 'crb_2', 'crb_0') where id = 'rsv_1'",
    [
      'unknown_balance 1 user_1 credit balance "crb_0": there is no row, but 0 ledger rows (0) and 1 lines of open holds (1) name it',
      'held 1 user_1 credit balance "crb_2": held 1, but open holds took 0',
    ],
  ],
  [
    "a balance of an unknown user",
    balance("crb_3", 2_000_000, "0", "0"),
    ['unknown_user 2000000 - credit balance "crb_3": there is no such user'],
  ],
  [
    "an open hold of an unknown user, between known ones and before them",
    "insert into reservations select 'rsv_9', -5, status, event, metadata, quantity, count, amounts, per_unit, '[]', " +
    "created_at_ms, expires_at_ms, settled_at_ms, '[]' from reservations where id = 'rsv_1'",
    ['unknown_user -5 - open hold "rsv_9": there is no such user'],
  ],
];

/** A copy of the open hold of user 1, without amounts. */
function copyOfHold(id: string, userKey: number, status: string, settledAt: string): string {
  return `insert into reservations select '${id}', ${userKey}, '${status}', event, metadata, quantity, count, amounts,
    per_unit, '[]', created_at_ms, expires_at_ms, ${settledAt}, '[]' from reservations where id = 'rsv_1'`;
}

const TWICE = 'hold 1 user_1 open hold "rsv_1": it is in the tables twice';

const HOLDS: readonly Fault[] = [
  ["an open hold that is settled too", copyOfHold("rsv_1", 1, "released", `${END}`), [TWICE]],
  [
    "an open hold that is open twice",
    // The first member that joins drops the index.
    `drop index if exists open_reservations_id; ${copyOfHold("rsv_1", 1, "held", "null")}`,
    [TWICE],
  ],
  [
    "an open hold of an alias",
    `update users set merged_into = 2, due_at_ms = ${START} where key = 3;
     ${copyOfHold("rsv_9", 3, "held", "null")}`,
    ['hold 3 user_3 open hold "rsv_9": its user is an alias'],
  ],
];

const DUE_MARKS_AND_MESSAGES: readonly Fault[] = [
  [
    "a user that is never due, though a hold lapses",
    "update users set due_at_ms = null where key = 1",
    [`due 1 user_1 never due, but a hold lapses: "rsv_1" at ${END} ms`],
  ],
  [
    "a user that is due after a trial ends",
    `update subscriptions set trial_ends_at_ms = ${END - 1} where id = 'sub_1'`,
    [`due 1 user_1 due at ${END} ms, but a trial ends: "sub_1" at ${END - 1} ms`],
  ],
  [
    "a user that is due after a subscription changes its plan",
    `update subscriptions set scheduled_at_ms = ${END - 1}, scheduled_plan_id = 'plan_b' where id = 'sub_1'`,
    [`due 1 user_1 due at ${END} ms, but a subscription changes its plan: "sub_1" at ${END - 1} ms`],
  ],
  [
    "a user that is due after a subscription ends",
    `update subscriptions set ends_at_ms = ${END - 1} where id = 'sub_1'`,
    [`due 1 user_1 due at ${END} ms, but a subscription ends: "sub_1" at ${END - 1} ms`],
  ],
  [
    "a user that is due after credits expire",
    `update credit_balances set expires_at_ms = ${END - 2} where id = 'crb_2'`,
    [`due 1 user_1 due at ${END} ms, but credits expire: "crb_2" at ${END - 2} ms`],
  ],
  [
    "credits that expired already, or are revoked, are not due",
    `update credit_balances set expires_at_ms = ${START}, told = 7 where id = 'crb_1';
     update credit_balances set expires_at_ms = ${START}, revoked_at_ms = ${START} where id = 'crb_2'`,
    [],
  ],
  ...["", "80,", "-1", "0,80,0", "100.000001", "50,50", "50,50.0", "80;90", "NaN"].map((alerted) =>
    [
      `counters that alerted at "${alerted}"`,
      `update counters set alerted = '${alerted}' where user_key = 2`,
      [
        `alerted 2 user_2 counter "g" of plan "plan_a" from ${START} ms: alerted "${alerted}", but these are percents up to 100, or 0 for the pace, none twice`,
      ],
    ] as const
  ),
  ...([
    ["alerted_quota = 10", "alerted_quota 10, but that is at least 0 and beside alerted"],
    ["alerted = '80', alerted_quota = -1", "alerted_quota -1, but that is at least 0 and beside alerted"],
    [
      "alerted = '80', alerted_quota = 0, block_filler = 0, block_up_to = 1, reset_at_ms = window_start_ms",
      null,
    ],
    [
      "block_filler = 3",
      "block_filler 3, block_up_to null, but these are both null, or at least 0 and above 0",
    ],
    [
      "block_filler = -1, block_up_to = 5",
      "block_filler -1, block_up_to 5, but these are both null, or at least 0 and above 0",
    ],
    ["reset_at_ms = window_end_ms", `reset at ${END} ms, which is outside its window`],
    ["reset_at_ms = window_start_ms - 1", `reset at ${START - 1} ms, which is outside its window`],
    ["window_end_ms = null, reset_at_ms = window_start_ms", null],
  ] as const).map(([set, fault]) =>
    [
      `counters with ${set}`,
      `update counters set ${set} where user_key = 2`,
      fault === null ? [] : [`entered 2 user_2 counter "g" of plan "plan_a" from ${START} ms: ${fault}`],
    ] as const
  ),
  [
    "a balance with an unknown bit of its messages",
    "update credit_balances set told = 8 where id = 'crb_1'",
    ['notified 1 user_1 credit balance "crb_1": notified 8, but that is a sum of 1, 2 and 4'],
  ],
  [
    "a balance whose messages report an expiry that it does not have",
    "update credit_balances set told = 6 where id = 'crb_1'",
    ['notified 1 user_1 credit balance "crb_1": notified 6, which says that it expired, but it never does'],
  ],
  [
    "a window of a plan that was given twice",
    "update credit_balances set origin = 'plan', included = '[]', own_ref = 'w' where user_key = 1 and id in ('crb_1', 'crb_2')",
    ['included 1 user_1 2 credit balances have the reference of our own "w"'],
  ],
  [
    "a rollover of no window",
    "update credit_balances set origin = 'rollover' where id = 'crb_1'",
    ['included 1 user_1 credit balance "crb_1": origin rollover, but it has no window of a plan'],
  ],
  [
    "a message for a webhook that never was",
    "update webhook_messages set webhook_id = 'whk_2' where id = 'whm_1'",
    ['message 1 user_1 message "whm_1": its app and mode have no webhook "whk_2"'],
  ],
  [
    "a message for a webhook of the other mode",
    "update webhook_messages set webhook_id = 'whk_test' where id = 'whm_1'",
    ['message 1 user_1 message "whm_1": its app and mode have no webhook "whk_test"'],
  ],
  [
    "a message of another realm than its user's",
    "update webhook_messages set realm = 2 where id = 'whm_1'",
    ['message 1 user_1 message "whm_1": realm 2, but its user is of realm 1'],
  ],
  [
    "a message with the data of another type",
    "update webhook_messages set type = 'credits.lower' where id = 'whm_1'",
    [
      `message 1 user_1 message "whm_1": type "credits.lower", but its body begins ${
        JSON.stringify('{"type":"credits.low","timestamp":""}')
      }`,
    ],
  ],
  [
    "a delivered message without an attempt",
    "update webhook_messages set attempts = 0 where id = 'whm_2'",
    ['message 1 user_1 message "whm_2": delivered without an attempt'],
  ],
  [
    "a message of an unknown user",
    "update webhook_messages set user_key = 9 where id = 'whm_1'",
    ['unknown_user 9 - message "whm_1": there is no such user'],
  ],
  [
    "a message of no user",
    "update webhook_messages set user_key = null where id = 'whm_1'",
    [],
  ],
];

/** A purchase of user 1 that was paid by a payment, which was refunded at a moment; the balance of it. */
function refunded(payment: string, at: string, userId = "user_1"): string {
  return `with bought as (
      insert into stripe_purchases (realm, external_ref, source, pack_id, quantity, user_id)
      values (1, 'il_1', 'in_1', 'pack', 1, '${userId}')
    ), paid as (insert into stripe_payments values (1, 'pi_1', 'in_1', 0)
    ), back as (insert into stripe_refunds (realm, payment, at_ms) values (1, '${payment}', ${at}))
    update credit_balances set external_ref = 'il_1' where id = 'crb_1'`;
}

const NOW = "extract(epoch from now())::bigint * 1000";
const NOT_REVOKED = 'refunded 1 user_1 credit balance "crb_1": its purchase "il_1" was refunded';

/** The same purchase for 500 cents by two payments. Some were refunded, or there is a dispute. */
function paidTwice(refunds: readonly number[], dispute = "") {
  const values = refunds.map((amount, at) => `(1, 'pi_${at + 1}', 5, 'ch_${at + 1}', ${amount}, 'usd')`).join(
    ", ",
  );
  const back = values === ""
    ? ""
    : `, back as (insert into stripe_refunds (realm, payment, at_ms, charge, amount, currency) values ${values})`;
  const disputed = dispute === "" ? "" : `, disputed as (insert into stripe_disputes values ${dispute})`;
  return `with bought as (
      insert into stripe_purchases (realm, external_ref, source, pack_id, quantity, user_id, paid_amount, paid_currency)
      values (1, 'il_1', 'in_1', 'pack', 1, 'user_1', 500, 'usd')
    ), paid as (insert into stripe_payments values (1, 'pi_1', 'in_1', 0), (1, 'pi_2', 'in_1', 0)
    )${back}${disputed}
    update credit_balances set external_ref = 'il_1' where id = 'crb_1'`;
}

const STRIPE: readonly Fault[] = [
  ["credits with a refunded payment", refunded("pi_1", "5"), [NOT_REVOKED]],
  ["credits with a refunded invoice", refunded("in_1", "5"), [NOT_REVOKED]],
  ["a refund of another payment", refunded("pi_2", "5"), []],
  ["a purchase of another user", refunded("pi_1", "5", "user_2"), []],
  ["a refund that Stripe may still send again", refunded("pi_1", NOW), []],
  ["credits with two refunded payments", paidTwice([200, 300]), [NOT_REVOKED]],
  ["a refund of one of two payments", paidTwice([200]), []],
  ["refunds that are less than what was paid", paidTwice([200, 200]), []],
  [
    "credits of a disputed payment",
    paidTwice([], "(1, 'pi_1', 'dp_1', 500, 'usd', true, false, 5)"),
    [NOT_REVOKED.replace(/refunded$/, "disputed")],
  ],
  ["a dispute over a part", paidTwice([], "(1, 'pi_1', 'dp_1', 499, 'usd', true, false, 5)"), []],
  [
    "a dispute with funds that came back",
    paidTwice([], "(1, 'pi_1', 'dp_1', 500, 'usd', true, true, 5)"),
    [],
  ],
  ["a refund by a clock that is ahead", refunded("pi_1", `${NOW} + 9000000000`), []],
];

/** Every fault that is tried. */
export const FAULTS: readonly Fault[] = [...SUMS, ...HOLDS, ...DUE_MARKS_AND_MESSAGES, ...STRIPE];
