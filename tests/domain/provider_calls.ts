// What a payment provider does, as commands: a subscription mirrored, a grant that was paid for, a refund, and what a dispute gives back. No call of the
// API names them, so the answers are of the model's own shape.

import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { type ModelReply, type ModelRequest, PROVIDER_OPERATIONS, type WireData } from "../model/document.ts";
import type { DecideSystem } from "./decide_system.ts";
import { SHOW } from "./wire_answer.ts";
import { mirrorOf, paidGrantOf, refundOf, reinstateOf, userOf } from "./wire_input.ts";

/** A command and what its answer looks like. */
interface ProviderCall<Name extends CommandName> {
  readonly name: Name;
  readonly input: Commands[Name]["input"];
  /** References of the balances that must be in memory. */
  readonly externalRefs: readonly string[];
  readonly show: (answer: Commands[Name]["answer"], catalog: Catalog) => WireData;
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
        externalRefs: [],
        show: SHOW.mirror,
      });
    case "paidGrant":
      return put({ name: "grant", input: paidGrantOf(input), externalRefs: [externalRef], show: SHOW.grant });
    case "reinstate": {
      const command = reinstateOf(input);
      const externalRefs = [externalRef, ...command.earlierRefs, command.newRef];
      return put({ name: "reinstate", input: command, externalRefs, show: SHOW.reinstate });
    }
    default:
      return put({
        name: "refund",
        input: refundOf(input),
        externalRefs: [externalRef],
        show: SHOW.refund,
      });
  }
}

/** Answers a provider's request at a moment. */
export function answerProvider(system: DecideSystem, request: ModelRequest, now: Millis): ModelReply {
  const userId = userOf(request.input);
  return withProviderCall(request, ({ name, input, externalRefs, show }) => {
    const state = system.stateOf(userId, now);
    if (externalRefs.length > 0) state.admit(system.tables.loadBalances(state.user.key, { externalRefs }));
    return system.ask(userId, name, input, now, show);
  });
}
