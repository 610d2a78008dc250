// Credit packs: grant, extend, revoke, balances and the ledger. Specification, "Credits"; section 6 of the decisions.

import { z } from "zod";
import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import { type Amount, amountOf, numberOf } from "../../src/domain/values/amount.ts";
import { unknownBalance } from "../../src/domain/credits/revoke.ts";
import { requireSameUser } from "../http/auth.ts";
import { answerOf, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { invalidMember } from "../http/errors.ts";
import {
  creditsAnswer,
  extendAnswer,
  grantAnswer,
  ledgerAnswer,
  revokeAnswer,
} from "../contract/schemas/answers.ts";
import {
  endUserId,
  eventPattern,
  moment,
  nameOf,
  SHOWN_AS,
  signedAmount,
  textOf,
  timeTextOrNull,
  wholeNumber,
} from "../contract/schemas/fields.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showBalance } from "./wire.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { listAllBalances } from "../../src/storage/queries/credits.ts";
import { hasBalance, isPlaceOf, listLedger, readCursor } from "../../src/storage/queries/ledger.ts";

interface CreditsWorld extends TurnWorld {
  readonly term: TurnWorld["term"] & Pick<Term, "flush"> & {
    readonly directory: Pick<Directory, "isSameUser">;
  };
  readonly database: Parameters<typeof listLedger>[0] & Parameters<typeof listAllBalances>[0];
}

const endpoint = endpointsOn<CreditsWorld>();

/** `POST /v1/credits/grant`: a balance for each item of a pack. */
const grant = endpoint({
  method: "POST",
  path: "/v1/credits/grant",
  access: "credit_write",
  input: z.object({
    userId: endUserId,
    packId: nameOf(REQUEST_LIMITS.idLengthMax),
    quantity: z.unknown().register(SHOWN_AS, { type: ["number", "null"], exclusiveMinimum: 0 }).optional(),
    externalRef: nameOf(REQUEST_LIMITS.externalRefLengthMax).nullish(),
    expiresAt: moment.nullish(),
    source: z.enum(["purchase", "grant", "refund", "manual"]).nullish(),
    notes: textOf(REQUEST_LIMITS.notesLengthMax).nullish(),
  }),
  doc: {
    id: "grantCredits",
    tag: "Credits",
    summary: "Issue credits of a pack",
    description:
      "packId is a pack's id or its name. A pack with items gives one balance for each and ignores " +
      "quantity; one without needs it. externalRef makes a retry harmless: a known one answers with the " +
      "balances as they are now. Without expiresAt the pack's default holds; null is evergreen.",
    answer: grantAnswer,
    errors: ["credit_pack_not_found", "invalid_quantity", "test_quota_exceeded"],
  },
  handle: (request) => {
    const { input } = request;
    const externalRef = input.externalRef ?? null;
    const call = {
      name: "grant",
      input: {
        pack: input.packId,
        quantity: quantityOf(input.quantity),
        externalRef,
        expiresAt: input.expiresAt,
        source: input.source ?? "purchase",
        notes: input.notes ?? null,
      },
      ...(externalRef === null ? {} : { needs: { externalRef } }),
    } as const;
    return runTurn(request, { userId: input.userId }, call, (answer) => {
      const balances = answer.balances.map(({ row }) => ({
        balanceId: row.id,
        packItemId: row.packItemId,
        remaining: numberOf(row.remaining),
        expiresAt: timeTextOrNull(row.expiresAt),
      }));
      const [first] = balances;
      const { balanceId, remaining, expiresAt } = first as (typeof balances)[number];
      return { balances, balanceId, remaining, expiresAt };
    });
  },
});

/** `POST /v1/credits/revoke`: the end of a balance. */
const revoke = endpoint({
  method: "POST",
  path: "/v1/credits/revoke",
  access: "credit_write",
  input: z.object({
    balanceId: nameOf(REQUEST_LIMITS.idLengthMax),
    reason: textOf(REQUEST_LIMITS.notesLengthMax).nullish(),
  }),
  doc: {
    id: "revokeCredits",
    tag: "Credits",
    summary: "End a balance",
    description: "What was consumed stays accounted for.",
    answer: revokeAnswer,
    errors: ["credit_balance_not_found"],
  },
  handle: (request) => {
    const { balanceId, reason } = request.input;
    const call = { name: "revoke", input: { balanceId, reason: reason ?? null } } as const;
    return runTurn(request, { balanceId }, call, () => ({ balanceId, remaining: 0 }));
  },
});

/** `POST /v1/credits/extend`: a later expiry of a balance. */
const extend = endpoint({
  method: "POST",
  path: "/v1/credits/extend",
  access: "credit_write",
  input: z.object({
    balanceId: nameOf(REQUEST_LIMITS.idLengthMax),
    expiresAt: moment.nullable(),
    reason: textOf(REQUEST_LIMITS.notesLengthMax).nullish(),
  }),
  doc: {
    id: "extendCredits",
    tag: "Credits",
    summary: "Give a balance a later expiry",
    description:
      "expiresAt is never before the expiry that the balance has; null is evergreen. A balance that has " +
      "expired can be spent again, one that was revoked stays so.",
    answer: extendAnswer,
    errors: ["credit_balance_not_found"],
  },
  handle: (request) => {
    const { balanceId, expiresAt, reason } = request.input;
    const call = { name: "extend", input: { balanceId, expiresAt, reason: reason ?? null } } as const;
    return runTurn(request, { balanceId }, call, ({ row }) => ({
      balanceId,
      remaining: numberOf(row.remaining),
      expiresAt: timeTextOrNull(row.expiresAt),
    }));
  },
});

/** `GET /v1/credits`: a user's balances in consumption order. */
const list = endpoint({
  method: "GET",
  path: "/v1/credits",
  access: "end_user",
  input: z.object({
    userId: endUserId,
    event: eventPattern.optional(),
    includeExpired: z.enum(["true", "false"]).optional(),
  }),
  doc: {
    id: "listCredits",
    tag: "Credits",
    summary: "A user's balances in the order of use",
    description:
      "Active and depleted ones; includeExpired adds those expired and revoked. event, a name or a glob, " +
      "narrows to balances that cover it.",
    answer: creditsAnswer,
    errors: [],
  },
  handle: async ({ world, caller, endUser, input }) => {
    await requireSameUser(world.term.directory, caller.realm, endUser, input.userId);
    const event = input.event ?? null;
    const call = { realm: caller.realm, name: "credits", input: { event } } as const;
    const result = await world.term.directory.runById(input.userId, call);
    if (!result.ok || input.includeExpired !== "true") {
      return answerOf(result, ({ balances, now }) => ({
        credits: balances.map((balance) => showBalance(balance, now)),
      }));
    }
    await world.term.flush();
    const { userKey, now } = result.answer;
    const filter = { event, includeExpired: true };
    const balances = await listAllBalances(world.database, userKey, caller.realm.catalog, filter, now);
    return success({ credits: balances.map((balance) => showBalance(balance, now)) });
  },
});

/** `GET /v1/credits/history`: a user's ledger, newest first. */
const history = endpoint({
  method: "GET",
  path: "/v1/credits/history",
  access: "secret",
  input: z.object({
    userId: endUserId,
    limit: wholeNumber(1, REQUEST_LIMITS.ledgerLimitMax).optional(),
    cursor: z.string().optional(),
    balanceId: nameOf(REQUEST_LIMITS.idLengthMax).optional(),
  }),
  doc: {
    id: "listLedger",
    tag: "Credits",
    summary: "A user's credit ledger, newest first",
    description: "cursor is the nextCursor of the page before.",
    answer: ledgerAnswer,
    errors: ["credit_balance_not_found"],
  },
  handle: async ({ world, caller, input }) => {
    const after = input.cursor === undefined ? null : readCursor(input.cursor) ?? refuseCursor();
    const call = { realm: caller.realm, name: "credits", input: { event: null } } as const;
    const result = await world.term.directory.runById(input.userId, call);
    if (!result.ok) return answerOf(result, () => null);
    await world.term.flush();
    const { userKey } = result.answer;
    if (after !== null && !await isPlaceOf(world.database, userKey, after)) refuseCursor();
    const { limit = REQUEST_LIMITS.ledgerLimitDefault, balanceId = null } = input;
    if (balanceId !== null && !await hasBalance(world.database, userKey, balanceId)) {
      return answerOf({ ok: false, refusal: unknownBalance() }, () => null);
    }
    return success(await listLedger(world.database, { userKey, balanceId, after, limit }));
  },
});

export const CREDITS: readonly Endpoint<CreditsWorld>[] = [grant, extend, revoke, list, history];

function refuseCursor(): never {
  throw invalidMember("cursor", "is none that this call gave for this user");
}

/** The amount that was sent; a pack with items ignores it, whatever it is. */
function quantityOf(value: unknown): Amount | "malformed" | null {
  if (value === undefined || value === null) return null;
  const parsed = signedAmount.safeParse(value);
  return parsed.success ? amountOf(parsed.data) : "malformed";
}
