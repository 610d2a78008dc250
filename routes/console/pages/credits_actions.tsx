// What is done to a user's credits: grant, revoke, and another expiry.

import type { CreditBalance } from "../../../src/client/wire_types.ts";
import type { PackDocument } from "../../../src/domain/catalog/catalog.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { type Act, actAt } from "../parts/action.tsx";
import { amountText, timeLabel } from "../parts/format.tsx";
import { type Fault, numberIn, textIn, timeField, timeIn, type Values } from "../parts/form.tsx";
import type { PageRequest, Shown } from "../parts/page_context.ts";
import { packOf, readCatalog, type ShownCatalog } from "./catalog_actions.ts";
import { aboutUser, placeOfUser, refusedPage, type UserSubject } from "../parts/subject.tsx";

interface GrantSubject extends UserSubject {
  readonly catalog: ShownCatalog;
}

const DAY_WORDS = (days: number) => days === 1 ? "1 day" : `${days} days`;

const grant: Act<GrantSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/grant",
  title: "Grant credits",
  about: async (request) => {
    const subject = await aboutUser(request);
    if (!("user" in subject)) return subject;
    const catalog = await readCatalog(request, subject.app);
    if (offered(catalog).length === 0) {
      return refusedPage(
        { code: "not_found", message: "The catalog has no credit pack on offer. Add one to it first." },
        "No pack to grant",
      );
    }
    return { ...subject, catalog };
  },
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  lead: ({ user }) => `For ${user.userId}.`,
  fields: ({ catalog }) => [
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
      hint: "Only for a pack that has no items of its own.",
    },
    {
      name: "expiry",
      label: "Expires",
      kind: "select",
      value: "default",
      options: [
        { value: "default", text: "As the pack says" },
        { value: "never", text: "Never" },
        { value: "at", text: "At the time below" },
      ],
    },
    { name: "expiresAt", label: "Time of the expiry", kind: "time" },
    {
      name: "externalRef",
      label: "Your reference",
      kind: "text",
      hint: "An order or a ticket. The same reference never grants the same pack to this user twice.",
    },
    {
      name: "source",
      label: "Where it comes from",
      kind: "select",
      value: "manual",
      options: ["manual", "grant", "refund", "purchase"].map((value) => ({ value, text: value })),
    },
    { name: "notes", label: "Notes", kind: "long", hint: "For the ledger." },
  ],
  call: ({ user }, values) => ({
    id: "grantCredits",
    members: {
      userId: user.userId,
      packId: values["packId"],
      quantity: numberIn(values["quantity"] ?? ""),
      expiresAt: expiryOf(values),
      externalRef: textIn(values["externalRef"] ?? ""),
      source: values["source"],
      notes: textIn(values["notes"] ?? ""),
    },
  }),
  preview: async (request, { app, user, catalog }, values) => {
    const pack = packOf(catalog, values["packId"] ?? "");
    if (pack === null || pack.archived === true) {
      return [{ field: "packId", message: "This pack is not on offer any more" }];
    }
    const faults = grantFaults(pack, values);
    if (faults.length > 0) return faults;
    const issued = issuedBy(pack, values);
    const left = await leftByPack(request, app, user.userId, pack.id);
    return {
      sentences: [
        `${user.userId} gets ${issued.map(({ text }) => text).join(" and ")} of the pack ${pack.name}.`,
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
      ground: { pack },
      verb: "Grant",
    };
  },
  done: ({ user, catalog }, values) => {
    const pack = packOf(catalog, values["packId"] ?? "");
    return `${user.userId} has the credits of ${pack?.name ?? "the pack"}.`;
  },
};

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
    faults.push({ field: "quantity", message: "This pack needs an amount above 0" });
  }
  if (values["expiry"] === "at" && (values["expiresAt"] ?? "") === "") {
    faults.push({ field: "expiresAt", message: "Say when it expires" });
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
  return `They expire ${DAY_WORDS(defaultExpiryDays)} after the grant.`;
}

/** What is left of a pack's balances that can still be spent, by pack item. */
async function leftByPack(
  { ask }: PageRequest,
  app: UserSubject["app"],
  userId: string,
  packId: string,
): Promise<Map<string | null, number>> {
  const credits = await ask.app<{ credits: CreditBalance[] }>(app, "listCredits", { userId });
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

async function aboutBalance(request: PageRequest): Promise<BalanceSubject | Shown> {
  const subject = await aboutUser(request);
  if (!("user" in subject)) return subject;
  const { app, user } = subject;
  const credits = await request.ask.app<{ credits: CreditBalance[] }>(app, "listCredits", {
    userId: user.userId,
    includeExpired: "true",
  });
  if (!credits.ok) return refusedPage(credits.error);
  const balance = credits.data.credits.find(({ balanceId }) => balanceId === request.params["balanceId"]);
  if (balance === undefined) {
    return refusedPage(
      { code: "credit_balance_not_found", message: "This user has no balance of this id." },
      "No such balance",
    );
  }
  return { ...subject, balance };
}

const revoke: Act<BalanceSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/balances/:balanceId/revoke",
  title: "Revoke credits",
  about: aboutBalance,
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  lead: ({ balance }) => `What is left of ${balance.packName} goes. What was used stays accounted for.`,
  fields: () => [{ name: "reason", label: "Reason", kind: "long", hint: "For the ledger." }],
  call: ({ balance }, values) => ({
    id: "revokeCredits",
    members: { balanceId: balance.balanceId, reason: textIn(values["reason"] ?? "") },
  }),
  preview: (_, { user, balance }) => {
    if (balance.status === "revoked") {
      return [{ field: null, message: "This balance was revoked already." }];
    }
    return {
      sentences: [
        `${user.userId} loses what is left of this balance of ${balance.packName}.`,
        "Open holds keep what they have taken; what they give back is lost too.",
      ],
      changes: [{
        what: `Left of ${balance.packName}`,
        before: amountText(balance.remaining, balance.unit),
        after: amountText(0, balance.unit),
      }],
      danger: {
        consequence: "The balance never comes back. To give it back you would grant the pack again.",
        typed: user.userId,
      },
      verb: "Revoke",
    };
  },
  done: ({ balance }) => `The balance of ${balance.packName} is revoked.`,
};

const extend: Act<BalanceSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/balances/:balanceId/extend",
  title: "Extend credits",
  about: aboutBalance,
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  lead: ({ user, balance }) =>
    `The balance of ${balance.packName} of ${user.userId}, of which ${
      amountText(balance.remaining, balance.unit)
    } is left.`,
  fields: ({ balance }) => [
    {
      name: "never",
      label: "It never expires",
      kind: "checkbox",
    },
    {
      name: "expiresAt",
      label: "New expiry",
      kind: "time",
      value: timeField(balance.expiresAt),
      hint: "Not before the expiry that it has. Credits that have expired can be spent again.",
    },
    { name: "reason", label: "Reason", kind: "long", hint: "For the ledger." },
  ],
  call: ({ balance }, values) => ({
    id: "extendCredits",
    members: {
      balanceId: balance.balanceId,
      expiresAt: newExpiry(balance, values),
      reason: textIn(values["reason"] ?? ""),
    },
  }),
  preview: (_, { balance }, values) => {
    const expiresAt = newExpiry(balance, values);
    if (expiresAt === balance.expiresAt) {
      return [{ field: "expiresAt", message: "This is the expiry that it has: choose a later one" }];
    }
    return {
      sentences: [
        `The balance of ${balance.packName} can be spent ${
          expiresAt === null ? "for good" : `until ${timeLabel(expiresAt)}`
        }.`,
      ],
      changes: [{ what: "Expires", before: expiryText(balance.expiresAt), after: expiryText(expiresAt) }],
      ground: { status: balance.status },
      danger: {
        consequence: "An expiry is never brought forward again; credits can only be revoked.",
        typed: null,
      },
      verb: "Extend",
    };
  },
  done: ({ balance }, values) =>
    `The balance of ${balance.packName} expires ${expiryText(newExpiry(balance, values))}.`,
};

/** The expiry that was chosen. A field shows whole seconds: what was not touched is the expiry that the balance has. */
function newExpiry({ expiresAt }: CreditBalance, values: Values): string | null {
  if (values["never"] === "yes") return null;
  const chosen = values["expiresAt"] ?? "";
  return chosen === timeField(expiresAt) ? expiresAt : timeIn(chosen) ?? expiresAt;
}

function expiryText(at: string | null): string {
  return at === null ? "never" : timeLabel(at);
}

/** The acts on credits. */
export const CREDIT_ACTS = [actAt(grant), actAt(extend), actAt(revoke)];
