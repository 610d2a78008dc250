// What goes past quotas: what was sold, and a customer's own cap.

import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import type { Unit } from "../../src/domain/catalog/plan.ts";
import { hourOf } from "../../src/domain/state/overage.ts";
import { amountOf, numberOf, parseAmount } from "../../src/domain/values/amount.ts";
import { type OverageRecord, readOverage } from "../../src/storage/queries/overage.ts";
import { failure, success } from "../http/answer.ts";
import { requireSameUser } from "../http/auth.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { invalidMember } from "../http/errors.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import * as contract from "../contract/overage.ts";
import { timeText } from "../contract/fields.ts";

interface OverageWorld extends TurnWorld {
  readonly term: TurnWorld["term"] & Pick<Term, "flush"> & {
    readonly directory: Pick<Directory, "isSameUser">;
  };
  readonly database: Parameters<typeof readOverage>[0];
}

const endpoint = endpointsOn<OverageWorld>();
const HOUR_MS = 3_600_000;

export const OVERAGE: readonly Endpoint<OverageWorld>[] = [
  endpoint(contract.listOverage, async ({ world, caller, input }) => {
    const { realm } = caller;
    const to = input.to ?? hourOf(realm.now()) + HOUR_MS;
    const from = input.from ?? to - contract.OVERAGE_SPAN_MS;
    if (to - from > contract.OVERAGE_SPAN_MS) {
      throw invalidMember("from", "must be at most 92 days before to");
    }
    const result = await world.term.directory.runById(input.userId, { realm, name: "user", input: {} });
    if (!result.ok) return failure(result.refusal);
    await world.term.flush();
    const { userId, userKey, aliases } = result.answer;
    const rows = await readOverage(world.database, [userKey, ...aliases.map(({ key }) => key)], from, to);
    return success({ overage: rows.map((row) => showHour(userId, row)) });
  }),
  endpoint(contract.setSpendCap, async (request) => {
    const { world, caller, input, endUser } = request;
    const userId = input.userId ?? endUser?.userId;
    if (userId === undefined) throw invalidMember("userId", "is required");
    if (endUser !== null) await requireSameUser(world.term.directory, caller.realm, endUser, userId);
    const { groupId, max } = input;
    const call = {
      name: "spendCap",
      input: { groupId, max: max === null ? null : amountOf(max) },
    } as const;
    return runTurn(request, { userId }, call, (answer) => ({
      ...answer,
      max: answer.max === null ? null : numberOf(answer.max),
    }));
  }),
];

function showHour(userId: string, { group_id: groupId, unit, hour_ms, amount, total }: OverageRecord) {
  return {
    userId,
    groupId,
    unit: unit as Unit,
    hour: timeText(hour_ms),
    amount: numberOf(parseAmount(amount)),
    total: numberOf(parseAmount(total)),
  };
}
