// The clock of test mode.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { moment } from "./fields.ts";
import { time } from "./records.ts";

/** `GET /v1/test-clock` */
export const getTestClock = defineCall({
  id: "getTestClock",
  method: "GET",
  path: "/v1/test-clock",
  access: "test_secret",
  input: z.object({}),
  tag: "Test mode",
  summary: "The clock of test mode",
  description: "With a secret key of test mode.",
  answer: z.strictObject({ now: time }),
  errors: [],
});

/** `POST /v1/test-clock` */
export const moveTestClock = defineCall({
  id: "moveTestClock",
  method: "POST",
  path: "/v1/test-clock",
  access: "test_secret",
  input: z.object({ advanceSeconds: z.number().positive().nullish(), now: moment.nullish() })
    .refine((input) => (input.advanceSeconds == null) !== (input.now == null), {
      path: ["advanceSeconds"],
      message: "give either this or now",
    }),
  isLong: true,
  tag: "Test mode",
  summary: "Move the clock of test mode forward",
  description:
    "Everything that became due is settled before the answer. Give either advanceSeconds or now; the " +
    "clock never goes back.",
  answer: z.strictObject({ now: time }),
  errors: [],
});
