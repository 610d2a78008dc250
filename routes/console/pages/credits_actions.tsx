// Actions on a user's credits: grant, revoke, extend.

import type { PackDocument } from "../../../src/domain/catalog/catalog.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { type Action, actionRoutes } from "../parts/action.tsx";
import { amountText, timeLabel } from "../parts/format.tsx";
import { type Fault, type Field, numberIn, textIn, timeField, timeIn, type Values } from "../parts/form.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { packOf, readCatalog, type ShownCatalog } from "../parts/catalog.ts";
import { dataOf, loadUser, PageError, userLocation, type UserSubject } from "../parts/subject.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { lookUpId } from "../../contract/admin_users.ts";
import { extendCredits, grantCredits, listCredits, revokeCredits } from "../../contract/credits.ts";

type CreditBalance = AnswerOf<typeof listCredits>["credits"][number];

interface GrantSubject extends UserSubject {
  readonly catalog: ShownCatalog;
  /** What the operator may still grant today; null for no cap. */
  readonly unitsLeft: number | null;
}

const grant: Action<GrantSubject, typeof grantCredits> = {
  path: "/console/apps/:appId/:mode/users/:userId/grant",
  title: "Grant credits",
  load: async (request) => {
    const subject = await loadUser(request);
    const catalog = await readCatalog(request, subject.app);
    if (offered(catalog).length === 0) {
      throw new PageError(
        { code: "not_found", message: "The catalog has no active credit pack. Add one first." },
        "No pack to grant",
      );
    }
    return { ...subject, catalog, unitsLeft: await request.ask.unitsLeft() };
  },
  location: userLocation,
  intro: ({ user, unitsLeft }) =>
    unitsLeft === null
      ? `For ${user.userId}.`
      : `For ${user.userId}. You may grant ${amountText(unitsLeft)} more units today; 100 cents are a unit.`,
  fields: grantFields,
  call: grantCredits,
  input: ({ user }, values) => ({
    userId: user.userId,
    packId: values["packId"],
    quantity: numberIn(values["quantity"] ?? ""),
    expiresAt: expiryOf(values),
    externalRef: textIn(values["externalRef"] ?? ""),
    source: values["source"],
    notes: textIn(values["notes"] ?? ""),
  }),
  preview: async (request, { app, user, catalog }, values) => {
    const pack = packOf(catalog, values["packId"] ?? "");
    if (pack === null || pack.archived === true) {
      return [{ field: "packId", message: "This pack is no longer available" }];
    }
    const faults = grantFaults(pack, values);
    if (faults.length > 0) return faults;
    const known = await grantedBy(request, app, user.userId, pack.id, values["externalRef"] ?? "");
    if (known !== null) {
      const message =
        `Has already granted this pack: ${known}. Enter another one, or none, to grant it again`;
      return [{ field: "externalRef", message }];
    }
    const issued = issuedBy(pack, values);
    const left = await leftByPack(request, app, user.userId, pack.id);
    return {
      sentences: [
        `${user.userId} receives ${issued.map(({ text }) => text).join(" and ")} of the pack ${pack.name}.`,
        expirySentence(pack, values),
      ],
      changes: issued.map(({ itemId, label, unit, amount }) => {
        const before = left.get(itemId) ?? 0;
        return {
          what: `${label}, left in this pack`,
          before: amountText(before, unit),
          after: amountText(before + amount, unit),
        };
      }),
      basis: { pack },
      verb: "Grant",
    };
  },
  done: ({ user, catalog }, values) => {
    const pack = packOf(catalog, values["packId"] ?? "");
    return `Granted ${pack?.name ?? "the pack"} to ${user.userId}.`;
  },
};

function grantFields({ catalog }: GrantSubject): readonly Field[] {
  return [
    {
      name: "packId",
      label: "Pack",
      kind: "select",
      value: offered(catalog)[0]?.id ?? "",
      options: offered(catalog).map((pack) => ({ value: pack.id, text: `${pack.name}: ${contents(pack)}` })),
    },
    {
      name: "quantity",
      label: "Amount",
      kind: "number",
      hint: "Only for packs without items.",
    },
    {
      name: "expiry",
      label: "Expires",
      kind: "select",
      value: "default",
      options: [
        { value: "default", text: "Default of the pack" },
        { value: "never", text: "Never" },
        { value: "at", text: "At the time below" },
      ],
    },
    { name: "expiresAt", label: "Expiry time", kind: "time" },
    {
      name: "externalRef",
      label: "Reference",
      kind: "text",
      hint:
        "For example an order or ticket number. The same reference never grants the same pack to this user twice.",
    },
    {
      name: "source",
      label: "Source",
      kind: "select",
      value: "manual",
      options: ["manual", "grant", "refund", "purchase"].map((value) => ({ value, text: value })),
    },
    { name: "notes", label: "Notes", kind: "long", hint: "Stored in the ledger." },
  ];
}

function offered({ packs = [] }: ShownCatalog): readonly PackDocument[] {
  return packs.filter(({ archived }) => archived !== true);
}

function contents({ items, unit = "count" }: PackDocument): string {
  if (items.length === 0) return `any amount of ${unit}`;
  return items.map(({ label }) => label).join(", ");
}

function expiryOf(values: Values): string | null | undefined {
  if (values["expiry"] === "never") return null;
  return values["expiry"] === "at" ? timeIn(values["expiresAt"] ?? "") : undefined;
}

function grantFaults({ items }: PackDocument, values: Values): Fault[] {
  const faults: Fault[] = [];
  const quantity = numberIn(values["quantity"] ?? "");
  if (items.length === 0 && !(typeof quantity === "number" && quantity > 0)) {
    faults.push({ field: "quantity", message: "Enter a number greater than 0, such as 1.5" });
  }
  if (values["expiry"] === "at" && (values["expiresAt"] ?? "") === "") {
    faults.push({ field: "expiresAt", message: "Enter the expiry time" });
  }
  return faults;
}

function issuedBy({ items, unit = "count", name }: PackDocument, values: Values) {
  if (items.length > 0) {
    return items.map((item) => ({
      itemId: item.id as string | null,
      label: item.label,
      unit: item.unit,
      amount: item.amount,
      text: `${amountText(item.amount, item.unit)} (${item.label})`,
    }));
  }
  const amount = numberIn(values["quantity"] ?? "") as number;
  return [{ itemId: null, label: name, unit: unit as Unit, amount, text: amountText(amount, unit) }];
}

function expirySentence({ defaultExpiryDays = null }: PackDocument, values: Values): string {
  const at = expiryOf(values);
  if (typeof at === "string") return `They expire at ${timeLabel(at)}.`;
  if (at === null || defaultExpiryDays === null) return "They never expire.";
  return `They expire ${defaultExpiryDays === 1 ? "1 day" : `${defaultExpiryDays} days`} after the grant.`;
}

/** The balance of a pack that the user has under a reference: another grant would give nothing. Null for none. */
async function grantedBy(
  { ask }: PageRequest,
  app: UserSubject["app"],
  userId: string,
  packId: string,
  reference: string,
): Promise<string | null> {
  if (reference === "") return null;
  const looked = await ask.admin(lookUpId, { appId: app.appId, mode: app.mode, id: reference });
  if (!looked.ok || looked.data.found.length === 0) return null;
  const ids = new Set(looked.data.found.map(({ id }) => id));
  const { credits } = await ask.app(app, listCredits, { userId, includeExpired: "true" }).then(dataOf);
  return credits.find((balance) => balance.packId === packId && ids.has(balance.balanceId))?.balanceId ??
    null;
}

/** The spendable credits of a pack, by pack item. */
async function leftByPack(
  { ask }: PageRequest,
  app: UserSubject["app"],
  userId: string,
  packId: string,
): Promise<Map<string | null, number>> {
  const credits = await ask.app(app, listCredits, { userId });
  const left = new Map<string | null, number>();
  for (const balance of credits.ok ? credits.data.credits : []) {
    if (balance.packId !== packId) continue;
    left.set(balance.packItemId, (left.get(balance.packItemId) ?? 0) + balance.remaining);
  }
  return left;
}

interface BalanceSubject extends UserSubject {
  readonly balance: CreditBalance;
}

async function loadBalance(request: PageRequest): Promise<BalanceSubject> {
  const subject = await loadUser(request);
  const { app, user: { userId } } = subject;
  const { credits } = await request.ask.app(app, listCredits, { userId, includeExpired: "true" }).then(
    dataOf,
  );
  const balance = credits.find(({ balanceId }) => balanceId === request.params["balanceId"]);
  if (balance === undefined) {
    throw new PageError(
      { code: "credit_balance_not_found", message: "This user has no credit balance with this ID." },
      "Credit balance not found",
    );
  }
  return { ...subject, balance };
}

const revoke: Action<BalanceSubject, typeof revokeCredits> = {
  path: "/console/apps/:appId/:mode/users/:userId/balances/:balanceId/revoke",
  title: "Revoke credits",
  load: loadBalance,
  location: userLocation,
  intro: ({ balance }) =>
    `Removes the remaining credits of ${balance.packName}. Used credits stay in the ledger.`,
  fields: () => [{ name: "reason", label: "Reason", kind: "long", hint: "Stored in the ledger." }],
  call: revokeCredits,
  input: ({ balance }, values) => ({ balanceId: balance.balanceId, reason: textIn(values["reason"] ?? "") }),
  preview: (_, { user, balance }) => {
    if (balance.status === "revoked") {
      return [{ field: null, message: "This balance is already revoked." }];
    }
    return {
      sentences: [
        `${user.userId} loses the remaining credits of this balance of ${balance.packName}.`,
        "Open holds keep their amounts; amounts that they return are lost too.",
      ],
      changes: [{
        what: `Left of ${balance.packName}`,
        before: amountText(balance.remaining, balance.unit),
        after: amountText(0, balance.unit),
      }],
      danger: {
        consequence: "The balance cannot be restored. If needed, grant the pack again.",
        typed: user.userId,
      },
      verb: "Revoke",
    };
  },
  done: ({ balance }) => `The balance of ${balance.packName} is revoked.`,
};

const extend: Action<BalanceSubject, typeof extendCredits> = {
  path: "/console/apps/:appId/:mode/users/:userId/balances/:balanceId/extend",
  title: "Extend credits",
  load: loadBalance,
  location: userLocation,
  intro: ({ user, balance }) =>
    `${balance.packName} of ${user.userId}: ${amountText(balance.remaining, balance.unit)} left.`,
  fields: ({ balance }) => [
    { name: "never", label: "Never expires", kind: "checkbox" },
    {
      name: "expiresAt",
      label: "New expiry",
      kind: "time",
      value: timeField(balance.expiresAt),
      hint: "Not before the current expiry. Expired credits become spendable again.",
    },
    { name: "reason", label: "Reason", kind: "long", hint: "Stored in the ledger." },
  ],
  call: extendCredits,
  input: ({ balance }, values) => ({
    balanceId: balance.balanceId,
    expiresAt: newExpiry(balance, values),
    reason: textIn(values["reason"] ?? ""),
  }),
  preview: (_, { balance }, values) => {
    const expiresAt = newExpiry(balance, values);
    if (expiresAt === balance.expiresAt) {
      return [{ field: "expiresAt", message: "This is the current expiry: enter a later time" }];
    }
    return {
      sentences: [
        `The balance of ${balance.packName} can be spent ${
          expiresAt === null ? "without an expiry" : `until ${timeLabel(expiresAt)}`
        }.`,
      ],
      changes: [{ what: "Expires", before: expiryText(balance.expiresAt), after: expiryText(expiresAt) }],
      basis: { status: balance.status },
      danger: {
        consequence: "The expiry cannot be moved to an earlier time; the credits can only be revoked.",
        typed: null,
      },
      verb: "Extend",
    };
  },
  done: ({ balance }, values) =>
    `Expiry of the balance of ${balance.packName}: ${expiryText(newExpiry(balance, values))}.`,
};

/** The chosen expiry. The field has whole seconds, so an unchanged field means the current expiry. */
function newExpiry({ expiresAt }: CreditBalance, values: Values): string | null {
  if (values["never"] === "yes") return null;
  const chosen = values["expiresAt"] ?? "";
  return chosen === timeField(expiresAt) ? expiresAt : timeIn(chosen) ?? expiresAt;
}

function expiryText(at: string | null): string {
  return at === null ? "never" : timeLabel(at);
}

/** The actions on credits. */
export const CREDIT_ACTIONS = [actionRoutes(grant), actionRoutes(extend), actionRoutes(revoke)];
