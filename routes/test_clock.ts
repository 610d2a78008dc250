// The test clock: moves the whole test mode of an app forward and settles what became due. Section 3 of the
// decisions, "Test clock".

import { z } from "zod";
import { Refused } from "./errors.ts";
import { type Endpoint, endpoint, success } from "./endpoint.ts";
import { testClockAnswer } from "./schemas/answers.ts";
import { moment, timeText } from "./schemas/fields.ts";
import { moveTestClock } from "../src/tenant/test_clock.ts";

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
  handle: ({ caller }) => Promise.resolve(success({ now: timeText(caller.realm.now()) })),
});

const move = endpoint({
  method: "POST",
  path: "/v1/test-clock",
  access: "test_secret",
  input: z.object({ advanceSeconds: z.number().positive().nullish(), now: moment.nullish() })
    .refine((input) => (input.advanceSeconds == null) !== (input.now == null), {
      message: "give either advanceSeconds or now",
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
  handle: async ({ serving, caller, input }) => {
    const target = (now: number) => input.now ?? now + Math.round((input.advanceSeconds as number) * 1000);
    const moved = await moveTestClock(serving, caller.realm, target);
    if (typeof moved !== "number") throw new Refused(moved.code, moved.message);
    return success({ now: timeText(moved) });
  },
});

export const TEST_CLOCK: readonly Endpoint<unknown>[] = [read, move];
