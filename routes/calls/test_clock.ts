// The test clock: moves the whole test mode of an app forward and settles what became due. Section 3 of the
// decisions, "Test clock".

import { z } from "zod";
import { answerOf, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { testClockAnswer } from "../contract/schemas/answers.ts";
import { moment, timeText } from "../contract/schemas/fields.ts";
import { type ClockWorld, moveTestClock } from "../../src/tenant/test_clock.ts";

const endpoint = endpointsOn<ClockWorld>();

const read = endpoint({
  method: "GET",
  path: "/v1/test-clock",
  access: "test_secret",
  input: z.object({}),
  doc: {
    id: "getTestClock",
    tag: "Test mode",
    summary: "The clock of test mode",
    description: "With a secret key of test mode.",
    answer: testClockAnswer,
    errors: [],
  },
  handle: ({ caller }) => success({ now: timeText(caller.realm.now()) }),
});

const move = endpoint({
  method: "POST",
  path: "/v1/test-clock",
  access: "test_secret",
  isLong: true,
  input: z.object({ advanceSeconds: z.number().positive().nullish(), now: moment.nullish() })
    .refine((input) => (input.advanceSeconds == null) !== (input.now == null), {
      path: ["advanceSeconds"],
      message: "give either this or now",
    }),
  doc: {
    id: "moveTestClock",
    tag: "Test mode",
    summary: "Move the clock of test mode forward",
    description:
      "Everything that became due is settled before the answer. Give either advanceSeconds or now; the " +
      "clock never goes back.",
    answer: testClockAnswer,
    errors: [],
  },
  handle: async ({ world, caller, input }) => {
    const move = input.now == null
      ? { byMs: Math.round((input.advanceSeconds as number) * 1000) }
      : { to: input.now };
    return answerOf(await moveTestClock(world, caller.realm, move), (now) => ({ now: timeText(now) }));
  },
});

export const TEST_CLOCK: readonly Endpoint<ClockWorld>[] = [read, move];
