// Linearizability: there is one order of all calls, in which each takes effect between its sending and its answer, and
// in which the independent model gives every answer that was given.

import { compare } from "tests/model/compare.ts";
import type { CatalogDocument, ModelRequest } from "tests/model/document.ts";
import { Model } from "tests/model/model.ts";
import { type Attempt, type Call, isFinal, type Reply } from "tests/simulation/history.ts";
import type { Turn } from "tests/simulation/recorder.ts";
import { isGone } from "tests/simulation/traffic.ts";
import type { Violation } from "tests/simulation/simulation.ts";

interface Entry {
  readonly call: Call;
  readonly attempt: Attempt;
  readonly turn: Turn;
}

/** Checks a history against the model. */
export function checkLinear(calls: readonly Call[], catalog: CatalogDocument): Violation | null {
  const entries = calls.filter(isModelled).flatMap(entriesOf).sort((a, b) => a.turn.order - b.turn.order);
  const model = new Model(catalog);
  for (const { call, attempt, turn } of entries) {
    const reply = firstAnswer(call, attempt)?.model;
    const predicted = model.handle(call.request as ModelRequest, turn.now, reply);
    if (reply === undefined) continue;
    const differences = compare(predicted, reply);
    if (differences.length === 0) continue;
    const head = `call ${call.no} ${call.request.op} ${JSON.stringify(call.request.input)}`;
    return { checker: "linear", message: [head, ...differences].join("\n") };
  }
  return null;
}

/** Whether the model can be asked about a call. */
function isModelled({ request: { op, input } }: Call): boolean {
  return !(op === "erase" || op === "optOut" || op === "optIn") &&
    !["userId", "from", "to"].some((name) => isGone(input[name]));
}

/** What an execution answered: by itself, or, where that was never said, as it was replayed. */
function firstAnswer(call: Call, { reply }: Attempt): Reply | undefined {
  if (reply !== null && isFinal(reply)) return reply;
  return call.attempts.find((other) => other.reply?.isReplayed === true)?.reply ?? undefined;
}

/** The executions of a call that count: those that were answered, and those whose changes are durable. */
function entriesOf(call: Call): Entry[] {
  return call.attempts.flatMap((attempt) => {
    const turn = attempt.turns.at(-1);
    if (turn === undefined) return [];
    const { reply } = attempt;
    const isAnswer = reply !== null && isFinal(reply) && !reply.isReplayed;
    const isDurable = turn.batch !== null && turn.batch.durableAt !== null;
    return isAnswer || isDurable ? [{ call, attempt, turn }] : [];
  });
}
