// The client's types are those of the service: proven where this file is compiled. Inputs against the service's own
// schemas where it exports them, answers against the strict schemas by which `calls_test.ts` parses real ones.

import assert from "node:assert/strict";
import type { z } from "zod";
import type * as Client from "../../src/client/client.ts";
import type { RefusalCode } from "../../src/domain/refusal.ts";
import type {
  canUseInput,
  commitInput,
  releaseInput,
  reserveInput,
  trackInput,
} from "../../routes/schemas/metering.ts";
import type { ANSWERS, EXPORT_DOCUMENT } from "./answers.ts";

/** A type without `readonly`, and intersections as one object: what is left is what JSON has. */
type Plain<T> = T extends string | number | boolean | null | undefined ? T
  : T extends readonly (infer Item)[] ? Plain<Item>[]
  : { -readonly [Name in keyof T]: Plain<T[Name]> };

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;

type AnswerOf<Call extends (...input: never[]) => Promise<unknown>> = Awaited<ReturnType<Call>>;
type Calls = Client.HoldfastClient;
/** What a call answers that answers nothing. */
type Nothing = Record<string, never>;

interface AnswerTypes {
  "POST /v1/reserve": AnswerOf<Calls["reserve"]>;
  "POST /v1/commit": AnswerOf<Calls["commit"]>;
  "POST /v1/release": Nothing;
  "POST /v1/track": AnswerOf<Calls["track"]>;
  "POST /v1/can-use": AnswerOf<Calls["canUse"]>;
  "GET /v1/usage": AnswerOf<Calls["usage"]>;
  "GET /v1/usage/me": AnswerOf<Calls["usageMe"]>;
  "GET /v1/users/:userId": AnswerOf<Calls["users"]["get"]>;
  "GET /v1/plans": AnswerOf<Calls["plans"]["list"]>;
  "POST /v1/subscriptions": AnswerOf<Calls["subscriptions"]["upsert"]>;
  "DELETE /v1/subscriptions": AnswerOf<Calls["subscriptions"]["cancel"]>;
  "POST /v1/credits/grant": AnswerOf<Calls["credits"]["grant"]>;
  "POST /v1/credits/revoke": AnswerOf<Calls["credits"]["revoke"]>;
  "GET /v1/credits": AnswerOf<Calls["credits"]["list"]>;
  "GET /v1/credits/history": AnswerOf<Calls["credits"]["history"]>;
  "POST /v1/customers/alias": AnswerOf<Calls["customers"]["alias"]>;
  "POST /v1/customers/alias/batch": AnswerOf<Calls["customers"]["aliasMany"]>;
  "GET /v1/customers/:id": AnswerOf<Calls["customers"]["get"]>;
  "POST /v1/compose": Client.ComposeAnswer;
  "POST /v1/capture": AnswerOf<Calls["analytics"]["capture"]>;
  "POST /v1/identify": AnswerOf<Calls["analytics"]["identify"]>;
  "POST /v1/alias": AnswerOf<Calls["analytics"]["alias"]>;
  "POST /v1/opt-out": Nothing;
  "POST /v1/opt-in": Nothing;
  "GET /v1/opted-out": { optedOut: AnswerOf<Calls["analytics"]["isOptedOut"]> };
  "POST /v1/delete-person": AnswerOf<Calls["analytics"]["deletePerson"]>;
  "GET /v1/deletion-status": AnswerOf<Calls["analytics"]["deletionStatus"]>;
  "POST /v1/export-person": AnswerOf<Calls["analytics"]["exportPerson"]>;
  "GET /v1/events": AnswerOf<Calls["events"]["list"]>;
  "GET /v1/events/:eventId": AnswerOf<Calls["events"]["get"]>;
  "GET /v1/test-clock": AnswerOf<Calls["testClock"]["read"]>;
  "POST /v1/test-clock": AnswerOf<Calls["testClock"]["move"]>;
}

/** The operations whose schema and type differ in any member. */
type Disagreements = {
  [Name in keyof typeof ANSWERS]: Name extends keyof AnswerTypes
    ? Equal<Plain<z.output<(typeof ANSWERS)[Name]>>, Plain<AnswerTypes[Name]>> extends true ? never : Name
    : Name;
}[keyof typeof ANSWERS];

type ExportAgrees = Equal<
  Plain<z.output<typeof EXPORT_DOCUMENT>>,
  Plain<AnswerOf<Calls["analytics"]["downloadExport"]>>
>;

/** A call's positional and optional members as one body. */
interface Common {
  userId: string;
  event: string;
  quantity?: number | undefined;
  metadata?: Client.Metadata | undefined;
}

interface Settling {
  reservationId: string;
}

/** Whether everything that the client takes is something the schema takes, and neither has a member more. */
type Sends<Input, Schema extends z.ZodType> = [Input] extends [z.input<Schema>]
  ? Equal<keyof Plain<Input>, keyof z.input<Schema>>
  : false;

type InputsAgree = {
  reserve: Sends<Common & Client.ReserveOptions, typeof reserveInput>;
  withReservation: Sends<Client.ReservedWork, typeof reserveInput>;
  commit: Sends<Settling & Client.CommitOptions, typeof commitInput>;
  extra: Equal<keyof Client.Extra, keyof NonNullable<z.input<typeof commitInput>["extra"]>>;
  actual: Equal<keyof Client.Actual, keyof NonNullable<z.input<typeof commitInput>["actual"]>>;
  release: Sends<Settling & Client.ReleaseOptions, typeof releaseInput>;
  track: Sends<Common & Client.TrackOptions, typeof trackInput>;
  canUse: Sends<Common & Client.CallSize, typeof canUseInput>;
};

Deno.test("the client's types are those of the service, member by member", () => {
  const answers: [Disagreements] extends [never] ? "agree" : { readonly of: Disagreements } = "agree";
  const document: ExportAgrees = true;
  const codes: Equal<Client.ServiceErrorCode, RefusalCode> = true;
  const inputs: InputsAgree = {
    reserve: true,
    withReservation: true,
    commit: true,
    extra: true,
    actual: true,
    release: true,
    track: true,
    canUse: true,
  };
  assert.ok(answers === "agree" && document && codes && Object.values(inputs).every(Boolean));
});
