// Top-ups: the setting of a user, and what it bought.

import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import type { TopUpAnswer } from "../../src/domain/credits/top_up_setting.ts";
import { amountOf, numberOf } from "../../src/domain/values/amount.ts";
import type { TopUpIntent } from "../../src/domain/state/top_up.ts";
import { keyOf } from "../../src/integrations/stripe/stripe_client.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import type { StripeKeys } from "../../src/process/stripe_keys.ts";
import type { Database } from "../../src/storage/database.ts";
import { listTopUps } from "../../src/storage/stores/top_up_store.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import type { DataOf } from "../contract/definition.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";
import * as contract from "../contract/top_ups.ts";
import { failure, success } from "../http/answer.ts";
import { requireSameUser } from "../http/auth.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint, EndpointRequest } from "../http/endpoint_types.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";

interface TopUpsWorld extends TurnWorld {
  readonly term: TurnWorld["term"] & Pick<Term, "flush"> & {
    readonly directory: Pick<Directory, "actorOf" | "isSameUser">;
  };
  readonly database: Pick<Database, "query">;
  readonly registry: Pick<Registry, "apps">;
  readonly features: { readonly stripe: StripeKeys };
}

const endpoint = endpointsOn<TopUpsWorld>();

export const TOP_UPS: readonly Endpoint<TopUpsWorld>[] = [
  endpoint(contract.putTopUp, async (request) => {
    const { world, caller, input, endUser } = request;
    await requireOwn(request);
    if (keyOf(world.features.stripe, world.registry, caller.app, caller.realm.mode) === null) {
      const name = `STRIPE_API_KEY_${caller.realm.mode.toUpperCase()}__${caller.app.record.appId}`;
      throw new Refused("not_implemented", `${name} is not set`);
    }
    const { userId, packId, quantity = null, below, maxPerMonth } = input;
    const { stripeCustomerId: customerId = null, stripePaymentMethodId: paymentMethodId = null } = input;
    if (endUser !== null && (customerId !== null || paymentMethodId !== null)) {
      const message = "stripeCustomerId and stripePaymentMethodId: only a secret key may set them";
      throw new Refused("forbidden", message);
    }
    const command = {
      ...{
        pack: packId,
        below: amountOf(below),
        quantity,
        maxPerMonth,
        enabled: input.enabled ?? true,
        customerId,
        paymentMethodId,
      },
      isBackend: endUser === null,
    };
    const show = (answer: TopUpAnswer) => showSetting(answer, endUser === null);
    return await runTurn(request, { userId }, { name: "putTopUp", input: command }, show);
  }),
  endpoint(contract.getTopUp, async (request) => {
    await requireOwn(request);
    const { userId } = request.input;
    const show = (answer: TopUpAnswer) => showSetting(answer, request.endUser === null);
    return await runTurn(request, { userId }, { name: "readTopUp", input: {} }, show);
  }),
  endpoint(contract.deleteTopUp, async (request) => {
    await requireOwn(request);
    const { userId } = request.input;
    const call = { name: "deleteTopUp", input: {} } as const;
    return await runTurn(
      request,
      { userId },
      call,
      ({ userId, isUnderWay: underWay }) => ({ userId, underWay }),
    );
  }),
  endpoint(contract.listTopUps, async (request) => {
    await requireOwn(request);
    const { world, caller: { realm }, input: { userId, cursor, limit = REQUEST_LIMITS.runsLimit } } = request;
    // A read is a turn too, and settles what is due.
    const result = await world.term.directory.runById(userId, {
      realm,
      name: "credits",
      input: { event: null },
    });
    if (!result.ok) return failure(result.refusal);
    if (cursor !== undefined && !CURSOR.test(cursor)) {
      throw invalidMember("cursor", "is not a cursor of this list");
    }
    await world.term.flush();
    const { keys } = (await world.term.directory.actorOf(realm.realm, userId)).state;
    const found = await listTopUps(world.database, keys, cursor ?? null, limit + 1);
    const shown = found.slice(0, limit);
    const next = found.length > limit ? shown.at(-1)?.id ?? null : null;
    return success({ topUps: shown.map(showTopUp), cursor: next });
  }),
];

const CURSOR = /^tup_[0-9a-z]{1,11}_[0-9a-z]{20}$/;

function requireOwn({ world, caller, endUser, input }: EndpointRequest<TopUpsWorld, { userId: string }>) {
  return requireSameUser(world.term.directory, caller.realm, endUser, input.userId);
}

function showSetting(answer: TopUpAnswer, isBackend: boolean): DataOf<typeof contract.putTopUp> {
  const { userId, setting, enabled, topUp, openIntentId } = answer;
  const { packId, below, quantity, maxPerMonth, customerId, paymentMethodId } = setting;
  return {
    ...{ userId, packId, below: numberOf(below), quantity, maxPerMonth, enabled },
    ...isBackend ? { stripeCustomerId: customerId, stripePaymentMethodId: paymentMethodId } : {},
    ...{ openIntentId, nextTryAt: timeTextOrNull(topUp.nextTryAt), failures: topUp.failures },
  };
}

function showTopUp(row: TopUpIntent): DataOf<typeof contract.listTopUps>["topUps"][number] {
  const { id: topUpId, status, packId, quantity, amount, currency, paymentIntentId, reason } = row;
  const times = { createdAt: timeText(row.createdAt), settledAt: timeTextOrNull(row.settledAt) };
  return { topUpId, status, packId, quantity, amount, currency, paymentIntentId, reason, ...times };
}
