// The clock of test mode. Moving it settles everything that became due.

import type { Millis } from "../../src/domain/values/period.ts";
import { answerOf, InsideKeeper, type KeepingTerm, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/test_clock.ts";
import { timeText } from "../contract/fields.ts";
import { type ClockWorld, moveTestClock } from "../../src/tenant/test_clock.ts";

type MovedWorld = ClockWorld & { readonly term: KeepingTerm };

const endpoint = endpointsOn<MovedWorld>();

export const TEST_CLOCK: readonly Endpoint<MovedWorld>[] = [
  endpoint(contract.getTestClock, ({ caller }) => success({ now: timeText(caller.realm.now()) })),
  endpoint(contract.moveTestClock, async ({ world, caller, input, idempotent }) => {
    const move = input.now == null
      ? { byMs: Math.round((input.advanceSeconds as number) * 1000) }
      : { to: input.now };
    const { realm } = caller;
    const show = (now: Millis) => ({ now: timeText(now) });
    if (idempotent === null) return answerOf(await moveTestClock(world, realm, move, null), show);
    const keeper = new InsideKeeper<ReturnType<typeof show>>(world.term, idempotent);
    const moved = await moveTestClock(world, realm, move, (session, to) => keeper.keep(session, show(to)));
    return keeper.written ?? answerOf(moved, show);
  }),
];
