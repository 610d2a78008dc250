// Credits: grants of packs, later expiry, revocation, balances and the ledger.

import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import { type Amount, amountOf, numberOf } from "../../src/domain/values/amount.ts";
import { unknownBalance } from "../../src/domain/credits/revoke.ts";
import { requireSameUser } from "../http/auth.ts";
import { answerOf, failure, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/credits.ts";
import { invalidMember } from "../http/errors.ts";
import { signedAmount, timeTextOrNull } from "../contract/fields.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showBalance } from "./shown_records.ts";
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

export const CREDITS: readonly Endpoint<CreditsWorld>[] = [
  endpoint(contract.grantCredits, (request) => {
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
      ...(externalRef === null ? {} : { needs: { externalRefs: [externalRef] } }),
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
  }),
  endpoint(contract.extendCredits, (request) => {
    const { balanceId, expiresAt, reason } = request.input;
    const call = { name: "extend", input: { balanceId, expiresAt, reason: reason ?? null } } as const;
    return runTurn(request, { balanceId }, call, ({ row }) => ({
      balanceId,
      remaining: numberOf(row.remaining),
      expiresAt: timeTextOrNull(row.expiresAt),
    }));
  }),
  endpoint(contract.revokeCredits, (request) => {
    const { balanceId, reason } = request.input;
    const call = { name: "revoke", input: { balanceId, reason: reason ?? null } } as const;
    return runTurn(request, { balanceId }, call, () => ({ balanceId, remaining: 0 }));
  }),
  endpoint(contract.listCredits, async ({ world, caller, endUser, input }) => {
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
  }),
  endpoint(contract.listLedger, async ({ world, caller, input }) => {
    const after = input.cursor === undefined ? null : readCursor(input.cursor) ?? refuseCursor();
    const call = { realm: caller.realm, name: "credits", input: { event: null } } as const;
    const result = await world.term.directory.runById(input.userId, call);
    if (!result.ok) return failure(result.refusal);
    await world.term.flush();
    const { userKey } = result.answer;
    if (after !== null && !await isPlaceOf(world.database, userKey, after)) refuseCursor();
    const { limit = REQUEST_LIMITS.ledgerLimitDefault, balanceId = null } = input;
    if (balanceId !== null && !await hasBalance(world.database, userKey, balanceId)) {
      return failure(unknownBalance());
    }
    return success(await listLedger(world.database, { userKey, balanceId, after, limit }));
  }),
];

function refuseCursor(): never {
  throw invalidMember("cursor", "must be the nextCursor of a previous page");
}

/** Reads the quantity. A pack with items ignores it, so that a malformed one is refused later. */
function quantityOf(value: unknown): Amount | "malformed" | null {
  if (value === undefined || value === null) return null;
  const parsed = signedAmount.safeParse(value);
  return parsed.success ? amountOf(parsed.data) : "malformed";
}
