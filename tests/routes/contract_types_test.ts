// A handler that doesn't fit its call doesn't compile: `deno check` fails on a line here that should be an error and is
// none. When the tests run, the definitions are held against each other.

import assert from "node:assert/strict";
import type { Result } from "../../src/domain/state/result.ts";
import { answerOf, failure, type RawAnswer, success, type WrittenAnswer } from "../../routes/http/answer.ts";
import { endpointsOn, keylessEndpointsOn } from "../../routes/http/endpoint.ts";
import { runTurn, type TurnWorld } from "../../routes/http/turn.ts";
import { CONTRACT } from "../../routes/contract/contract.ts";
import { type AnswerOf, defineCall, type InputOf } from "../../routes/contract/definition.ts";
import { ENDPOINTS } from "../../routes/app.ts";

const { reserve, release, getMyUsage, listRefusals, downloadExport, moveHistory, sweep } = CONTRACT;
const endpoint = endpointsOn<TurnWorld>();
const keyless = keylessEndpointsOn<unknown>();

Deno.test("an answer with a missing, wrong or unknown member does not compile", () => {
  endpoint(reserve, () => success({ allowed: true, matched: true }));
  endpoint(reserve, () => failure({ code: "not_found", message: "" }));
  // @ts-expect-error -- matched is missing
  endpoint(reserve, () => success({ allowed: true }));
  // @ts-expect-error -- allowed is no boolean
  endpoint(reserve, () => success({ allowed: "yes", matched: true }));
  // @ts-expect-error -- an optional member is misspelt
  endpoint(reserve, () => success({ allowed: true, matched: true, reservatonId: "r" }));
  // @ts-expect-error -- the same in a list of an async handler
  endpoint(listRefusals, async () => await success({ refusals: [{ userId: "u" }], limit: 1, offset: 0 }));
  const text = { code: "ok", status: 200, body: "" } as const;
  const other: WrittenAnswer<AnswerOf<typeof getMyUsage>> = text;
  // @ts-expect-error -- a text that holds the answer of another call
  endpoint(reserve, () => other);
});

Deno.test("an answer shaped in a turn, or of a result, is held to the call", () => {
  const user = { userId: "u" };
  const command = {
    name: "release",
    input: { reservationId: "", reason: null, errorCode: null, response: null },
  };
  type Release = typeof command & { readonly name: "release" };
  endpoint(release, (request) => runTurn(request, user, command as Release, () => ({})));
  // @ts-expect-error -- a release answers no members
  endpoint(release, (request) => runTurn(request, user, command as Release, () => ({ done: true })));
  endpoint(release, (request) =>
    // @ts-expect-error -- nor after something else was waited for
    Promise.resolve().then(() => runTurn(request, user, command as Release, () => ({ done: true }))));
  const result = { ok: true, answer: 1 } as Result<number>;
  // @ts-expect-error -- a number is no answer of this call
  endpoint(reserve, () => answerOf(result, (number) => number));
});

Deno.test("streams and gathered answers are held to the call", () => {
  // @ts-expect-error -- the document is another one
  keyless(downloadExport, () => new Response() as RawAnswer<{ readonly format: "csv" }>);
  // @ts-expect-error -- an answer in the envelope is no response
  keyless(moveHistory, () => new Response());
  const handle = () => success<{ historyRows: number }>({ historyRows: 1 });
  keyless(moveHistory, handle, { gather: (answers) => ({ historyRows: answers.length }) });
  // @ts-expect-error -- the gathered answer lacks its member
  keyless(moveHistory, handle, { gather: () => ({}) });
  // @ts-expect-error -- the answer of another call
  keyless(sweep, handle);
});

Deno.test("a handler gets the input of its call, and a caller sends it", () => {
  endpoint(reserve, ({ input }) => {
    const text: string | undefined = input.metadata?.text;
    // @ts-expect-error -- reserve has no such member
    return failure({ code: "not_found", message: `${text} ${input.reservationId}` });
  });
  const sent: InputOf<typeof reserve> = { userId: "u", event: "e", metadata: { any: 1 } };
  // @ts-expect-error -- event is missing
  const lacking: InputOf<typeof reserve> = { userId: "u" };
  assert.notDeepEqual(sent, lacking);
});

Deno.test("a definition with an unknown member does not compile", () => {
  // @ts-expect-error -- the flag is called isLong
  defineCall({ ...reserve, id: "other", isLogn: true });
  // @ts-expect-error -- the fast reader reads another input than the schema
  defineCall({ ...reserve, id: "other", plain: release.plain });
});

Deno.test("every call with a key has one handler, in the order of the reference", () => {
  const keyed = Object.values(CONTRACT).filter(({ access }) => access !== "admin" && access !== "open");
  assert.deepEqual(ENDPOINTS.map(({ id }) => id), keyed.map(({ id }) => id));
  for (const [id, call] of Object.entries(CONTRACT)) assert.equal(call.id, id);
});
