// What a payment provider does, as commands: a subscription mirrored, a grant that was paid for, a refund. No call of the
// API names them, so the answers are of the model's own shape.

import type { CommandName, Commands } from "../../src/domain/command.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { type ModelReply, type ModelRequest, PROVIDER_OPERATIONS, type WireData } from "../model/document.ts";
import type { DecideSystem } from "./decide_system.ts";
import { SHOW } from "./wire_answer.ts";
import { mirrorOf, paidGrantOf, refundOf, userOf } from "./wire_input.ts";

/** A command and what its answer looks like. */
export interface ProviderCall<Name extends CommandName> {
  readonly name: Name;
  readonly input: Commands[Name]["input"];
  /** Of the balances that must be in memory. */
  readonly externalRef: string | null;
  readonly show: (answer: Commands[Name]["answer"]) => WireData;
}

/** Whether a request is what a payment provider does. */
export function isOfProvider(op: ModelRequest["op"]): boolean {
  return PROVIDER_OPERATIONS.some((each) => each === op);
}

/** Puts a provider's request to a system as a command. */
export function withProviderCall<Reply>(
  { op, input }: ModelRequest,
  put: <Name extends CommandName>(call: ProviderCall<Name>) => Reply,
): Reply {
  const externalRef = String(input["externalRef"]);
  switch (op) {
    case "mirror":
      return put({
        name: "mirror",
        input: mirrorOf(input),
        externalRef: null,
        show: SHOW.mirror,
      });
    case "paidGrant":
      return put({ name: "grant", input: paidGrantOf(input), externalRef, show: SHOW.grant });
    default:
      return put({
        name: "refund",
        input: refundOf(input),
        externalRef,
        show: SHOW.refund,
      });
  }
}

/** Answers a provider's request at a moment. */
export function answerProvider(system: DecideSystem, request: ModelRequest, now: Millis): ModelReply {
  const userId = userOf(request.input);
  return withProviderCall(request, ({ name, input, externalRef, show }) => {
    const state = system.stateOf(userId, now);
    if (externalRef !== null) state.admit(system.tables.loadBalances(state.user.key, { externalRef }));
    return system.ask(userId, name, input, now, show);
  });
}
