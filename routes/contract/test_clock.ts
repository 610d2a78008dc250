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
  summary: "Get the clock of test mode",
  description: "Requires a secret key of test mode.",
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
      message: "send either this or now",
    }),
  isLong: true,
  tag: "Test mode",
  summary: "Advance the clock of test mode",
  description:
    "Everything that becomes due is settled before the answer. Send either advanceSeconds or now; the " +
    "clock never goes back.",
  answer: z.strictObject({ now: time }),
  errors: [],
});
