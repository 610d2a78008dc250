// The clock of test mode. Moving it settles everything that became due.

import { answerOf, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/test_clock.ts";
import { timeText } from "../contract/fields.ts";
import { type ClockWorld, moveTestClock } from "../../src/tenant/test_clock.ts";

const endpoint = endpointsOn<ClockWorld>();

export const TEST_CLOCK: readonly Endpoint<ClockWorld>[] = [
  endpoint(contract.getTestClock, ({ caller }) => success({ now: timeText(caller.realm.now()) })),
  endpoint(contract.moveTestClock, async ({ world, caller, input }) => {
    const move = input.now == null
      ? { byMs: Math.round((input.advanceSeconds as number) * 1000) }
      : { to: input.now };
    return answerOf(await moveTestClock(world, caller.realm, move), (now) => ({ now: timeText(now) }));
  }),
];
