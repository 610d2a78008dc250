// The commands of `deno task admin` about an app's connection to Stripe, and about messages that are not handled.

import type { AnswerOf } from "../../routes/contract/definition.ts";
import {
  deleteStripe,
  getStripe,
  listUnhandledStripe,
  listUserStripe,
  retryUnhandledStripe,
  setStripe,
} from "../../routes/contract/stripe.ts";
import { commandOf, type Groups } from "./admin_call.ts";
import { type Columns, safeText, tableOf } from "./table.ts";

type Settings = AnswerOf<typeof getStripe>;
type ModeSettings = Settings["live"] & { readonly mode: keyof Settings };

const MODE: Columns<ModeSettings> = [
  "mode",
  ["STATE", ({ isSet }) => isSet ? "connected" : "not connected"],
  "setAt",
  "path",
  [
    "LAST MESSAGE",
    ({ lastMessage }) => lastMessage === null ? null : `${lastMessage.type} ${lastMessage.eventId}`,
  ],
  ["AT", ({ lastMessage }) => lastMessage?.at ?? null],
  ["IGNORED BECAUSE", ({ lastMessage }) => lastMessage?.reason ?? null],
];
const UNHANDLED: Columns<AnswerOf<typeof listUnhandledStripe>["unhandled"][number]> = [
  "eventId",
  "type",
  "objectId",
  "amount",
  "currency",
  "createdAt",
  "reason",
];

const PAYMENTS: Columns<AnswerOf<typeof listUserStripe>["payments"][number]> = [
  "externalRef",
  "packId",
  "quantity",
  "amount",
  "currency",
  "at",
];

function userText({ payments, subscriptions, unhandled }: AnswerOf<typeof listUserStripe>): string {
  const subscribed = tableOf(["subscriptionId", "at", "isEnded"], subscriptions);
  return [tableOf(PAYMENTS, payments), subscribed, tableOf(UNHANDLED, unhandled)].join("\n\n");
}

function settingsText({ live, test }: Settings): string {
  return tableOf(MODE, [{ mode: "live" as const, ...live }, { mode: "test" as const, ...test }]);
}

function resultText(result: AnswerOf<typeof retryUnhandledStripe>): string {
  if (!result.handled) return `Not handled: ${safeText(result.reason)}`;
  return result.done.map(({ did, userId }) => `${did} for ${safeText(userId)}`).join("\n");
}

/** The group of commands. */
export const STRIPE_GROUP: Groups[string] = ["Connect Stripe, and see what was paid and not handled.", [
  commandOf("show", getStripe, settingsText, "admin stripe show --app app_1"),
  commandOf(
    "set",
    setStripe,
    settingsText,
    "admin stripe set --mode live --webhook-secret whsec_0123456789abcdef --app app_1",
  ),
  commandOf(
    "remove",
    deleteStripe,
    (_, { mode }) => `Disconnected Stripe in ${safeText(String(mode))} mode`,
    "admin stripe remove --mode test --app app_1 --yes",
    { confirms: "Messages from Stripe will be refused." },
  ),
  commandOf(
    "unhandled",
    listUnhandledStripe,
    ({ unhandled }) => tableOf(UNHANDLED, unhandled),
    "admin stripe unhandled --mode live --app app_1",
  ),
  commandOf("user", listUserStripe, userText, "admin stripe user user_1 --mode live --app app_1"),
  commandOf("retry", retryUnhandledStripe, resultText, "admin stripe retry evt_1 --app app_1"),
]];
