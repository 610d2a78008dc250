// Runs: the tasks of agents, each with limits that all of its calls share.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { amount, anyId, cursorPage, cutAt, endUserId, eventPattern, metadata, nameOf } from "./fields.ts";
import { runLimit, time, unit } from "./records.ts";
import { NESTING_MAX } from "../../src/domain/state/run.ts";
import { REASON_LENGTH_MAX } from "../../src/domain/values/texts.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** The id of a run. An unknown id is `not_found`, whatever its form. */
const runId = anyId(REQUEST_LIMITS.idLengthMax);

const status = z.enum(["active", "ended"]);

const members = {
  runId: z.string(),
  userId: z.string(),
  parentRunId: z.string().nullable().describe("The run around it"),
  name: z.string().nullable(),
  status,
  createdAt: time,
  expiresAt: time,
  endedAt: time.nullable(),
  reason: z.string().nullable().describe("The reason of the call that ended it"),
  limits: z.array(runLimit),
};

/** A run as the calls that change it answer. */
const changedRun = z.strictObject(members).meta({ id: "Run" });

/** A run with its metadata. */
const readRun = z.strictObject({
  ...members,
  metadata: z.record(z.string(), z.unknown()).nullable(),
}).meta({ id: "RunDetail" });

/** `POST /v1/runs` */
export const createRun = defineCall({
  id: "createRun",
  method: "POST",
  path: "/v1/runs",
  access: "secret",
  input: z.object({
    userId: endUserId,
    limits: z.array(z.object({
      unit,
      quota: amount,
      event: eventPattern.nullish().describe("The pattern of the events that count. Default: *"),
    })).min(1).max(REQUEST_LIMITS.runLimitsMax),
    name: nameOf(REQUEST_LIMITS.idLengthMax).nullish(),
    ttlSeconds: z.number().min(REQUEST_LIMITS.runTtlSecondsMin).max(REQUEST_LIMITS.runTtlSecondsMax)
      .nullish().describe(
        `When the run ends by itself. Default: ${REQUEST_LIMITS.runTtlSeconds}; with parentRunId not after that run`,
      ),
    parentRunId: runId.nullish().describe(
      `An open run of the same user: calls count there too. Runs nest at most ${NESTING_MAX} deep`,
    ),
    metadata: metadata.nullish(),
  }),
  tag: "Runs",
  summary: "Open a run",
  description:
    "Calls with its runId are refused where its limits leave no room, beside the limits of the plan; who pays " +
    "for them is unchanged.",
  answer: changedRun,
  errors: ["not_found", "run_ended"],
});

/** `GET /v1/runs/{runId}` */
export const getRun = defineCall({
  id: "getRun",
  method: "GET",
  path: "/v1/runs/:runId",
  access: "secret",
  input: z.object({ runId }),
  tag: "Runs",
  summary: "Get a run",
  description: "A run is kept for 30 days after its end.",
  answer: readRun,
  errors: ["not_found"],
});

/** `GET /v1/runs` */
export const listRuns = defineCall({
  id: "listRuns",
  method: "GET",
  path: "/v1/runs",
  access: "secret",
  input: z.object({
    userId: endUserId,
    status: status.optional(),
    ...cursorPage(REQUEST_LIMITS.runsLimitMax, REQUEST_LIMITS.runsLimit),
  }),
  tag: "Runs",
  summary: "List the runs of a user",
  description: "Newest first, without runs that ended more than 30 days ago.",
  answer: z.strictObject({ runs: z.array(readRun), cursor: z.string().nullable() }),
  errors: [],
});

/** `POST /v1/runs/{runId}/end` */
export const endRun = defineCall({
  id: "endRun",
  method: "POST",
  path: "/v1/runs/:runId/end",
  access: "secret",
  input: z.object({ runId, reason: cutAt(REASON_LENGTH_MAX).nullish() }),
  tag: "Runs",
  summary: "End a run",
  description: "Ends the runs within it too. Open reservations are settled as usual.",
  answer: changedRun,
  errors: ["not_found", "run_ended"],
});
