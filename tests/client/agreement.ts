// Compares the client's types with those that a generator makes from the OpenAPI document. Types only: a difference is
// the path of the member that differs, such as "reserve.answer.groups[].quota", and no difference is `never`.
// `types_test.ts` generates the document's types and compiles the comparison.

import type * as Client from "../../src/client/client.ts";
import type { RefusalCode } from "../../src/domain/values/refusal.ts";

type Calls = Client.HoldfastClient;
type Input<Call extends (...input: never[]) => unknown> = Parameters<Call>;
type Answer<Call extends (...input: never[]) => Promise<unknown>> = Awaited<ReturnType<Call>>;
/** The answer of a call that returns nothing. */
type Nothing = Record<never, never>;

/** What reserve, track, can-use and explain send: four positional members, and the members of their options. */
type Metered<Name extends "reserve" | "track" | "canUse" | "explain"> =
  & {
    userId: Input<Calls[Name]>[0];
    event: Input<Calls[Name]>[1];
    quantity?: Input<Calls[Name]>[2];
    metadata?: Input<Calls[Name]>[3];
  }
  & NonNullable<Input<Calls[Name]>[4]>;

interface Settled {
  reservationId: string;
}

interface Consent<Scope> {
  distinctId: string;
  scope?: Scope;
}

/** What each call sends and answers, by the document's operation. */
interface ClientOperations {
  reserve: [Metered<"reserve">, Answer<Calls["reserve"]>];
  commit: [Settled & Client.CommitOptions, Answer<Calls["commit"]>];
  release: [Settled & Client.ReleaseOptions, Nothing];
  track: [Metered<"track">, Answer<Calls["track"]>];
  // The client writes the events and reads the results itself.
  trackBatch: [{ events: Record<string, never>[] }, { results: readonly Client.BatchResult[] }];
  canUse: [Metered<"canUse">, Answer<Calls["canUse"]>];
  explain: [Metered<"explain">, Answer<Calls["explain"]>];
  getUsage: [{ userId?: string; event?: string }, Answer<Calls["usage"]>];
  // Its events are held against the service by the tests.
  streamUsage: [{ userId?: string; event?: string }, string];
  // `Usage` is the answer of both calls; only this one never has the duplicates.
  getMyUsage: [{ event?: string }, Omit<Answer<Calls["usageMe"]>, "duplicateActiveSubscriptions">];
  getUser: [{ userId: string }, Answer<Calls["users"]["get"]>];
  listPlans: [Nothing, Answer<Calls["plans"]["list"]>];
  upsertSubscription: [
    Input<Calls["subscriptions"]["upsert"]>[0],
    Answer<Calls["subscriptions"]["upsert"]>,
  ];
  cancelSubscription: [
    Input<Calls["subscriptions"]["cancel"]>[0],
    Answer<Calls["subscriptions"]["cancel"]>,
  ];
  grantCredits: [Input<Calls["credits"]["grant"]>[0], Answer<Calls["credits"]["grant"]>];
  extendCredits: [Input<Calls["credits"]["extend"]>[0], Answer<Calls["credits"]["extend"]>];
  revokeCredits: [Input<Calls["credits"]["revoke"]>[0], Answer<Calls["credits"]["revoke"]>];
  listCredits: [
    // A query holds text: the client writes a boolean as "true" or "false".
    Omit<Client.CreditQuery, "includeExpired"> & { includeExpired?: `${boolean}` },
    Answer<Calls["credits"]["list"]>,
  ];
  listLedger: [Client.LedgerQuery, Answer<Calls["credits"]["history"]>];
  aliasCustomer: [Input<Calls["customers"]["alias"]>[0], Answer<Calls["customers"]["alias"]>];
  aliasCustomers: [
    { pairs: readonly Client.AliasPair[] } & Client.MergeOptions,
    Answer<Calls["customers"]["aliasMany"]>,
  ];
  getCustomer: [{ id: string }, Answer<Calls["customers"]["get"]>];
  compose: [
    { type: string; userId: string; vars?: Input<Calls["compose"]>[2] },
    Client.ComposeAnswer,
  ];
  capture: [Client.CaptureInput, Answer<Calls["analytics"]["capture"]>];
  identify: [Client.IdentifyInput, Answer<Calls["analytics"]["identify"]>];
  aliasPerson: [Client.PersonAliasInput, Answer<Calls["analytics"]["alias"]>];
  optOut: [Consent<Input<Calls["analytics"]["optOut"]>[1]>, Nothing];
  optIn: [Consent<Input<Calls["analytics"]["optIn"]>[1]>, Nothing];
  isOptedOut: [
    Consent<Input<Calls["analytics"]["isOptedOut"]>[1]>,
    { optedOut: Answer<Calls["analytics"]["isOptedOut"]> },
  ];
  deletePerson: [{ distinctId: string }, Answer<Calls["analytics"]["deletePerson"]>];
  getDeletionStatus: [{ jobId: string }, Answer<Calls["analytics"]["deletionStatus"]>];
  exportPerson: [{ distinctId: string }, Answer<Calls["analytics"]["exportPerson"]>];
  downloadExport: [{ token: string }, Answer<Calls["analytics"]["downloadExport"]>];
  listEvents: [Client.EventQuery, Answer<Calls["events"]["list"]>];
  listRefusals: [Client.RefusalQuery, Answer<Calls["refusals"]["list"]>];
  getEvent: [{ eventId: string }, Answer<Calls["events"]["get"]>];
  getTestClock: [Nothing, Answer<Calls["testClock"]["read"]>];
  moveTestClock: [Input<Calls["testClock"]["move"]>[0], Answer<Calls["testClock"]["move"]>];
}

/** Everything in which the messages of webhooks differ; `never` when they agree. */
export type MessageDifferences<Webhooks> =
  | `${Exclude<keyof Webhooks, Client.WebhookType> & string}: unknown to the client`
  | {
    [Type in Client.WebhookType]: Type extends keyof Webhooks
      ? Webhooks[Type] extends { post: { requestBody: { content: { "application/json": infer Body } } } }
        ? Different<Body, Client.WebhookMessage<Type>, Type, "answer">
      : `${Type} is not as the generator writes a message`
      : `${Type}: unknown to the document`;
  }[Client.WebhookType];

/** An operation as the generator writes it, as far as this comparison reads it. */
interface GeneratedOperation {
  readonly parameters: { readonly path?: unknown; readonly query?: unknown };
  readonly requestBody?: unknown;
  readonly responses: {
    readonly 200: {
      readonly content: { readonly "application/json": unknown } | { readonly "text/event-stream": unknown };
    };
  };
}

/** Everything in which the client and the document differ; `never` when they agree. */
export type Differences<Operations> =
  | Exclude<keyof Operations, keyof ClientOperations>
  | {
    [Name in keyof ClientOperations]: Name extends keyof Operations
      ? Operations[Name] extends GeneratedOperation
        ? OperationDifferences<Operations[Name], ClientOperations[Name], Name>
      : `${Name} is not as the generator writes an operation`
      : `${Name} is not in the document`;
  }[keyof ClientOperations]
  | (Equal<Client.ServiceErrorCode, RefusalCode> extends true ? never : "error codes");

type OperationDifferences<
  Operation extends GeneratedOperation,
  Own extends [input: unknown, answer: unknown],
  Name extends string,
> =
  | Different<InputOf<Operation>, Own[0], `${Name}.input`, "input">
  | Different<AnswerOf<Operation>, Own[1], `${Name}.answer`, "answer">;

/** Members of path, query and body as one object, without the second place for options in a body. */
type InputOf<Operation extends GeneratedOperation> = Omit<
  & Given<Operation["parameters"]["path"]>
  & Given<Operation["parameters"]["query"]>
  & (Operation extends { requestBody: { content: { "application/json": infer Body } } } ? Body : Nothing),
  "options"
>;

type Given<Members> = [Exclude<Members, undefined>] extends [never] ? Nothing : Exclude<Members, undefined>;

/** The data in the envelope, or the whole answer where there is no envelope. */
type AnswerOf<Operation extends GeneratedOperation> =
  ContentOf<Operation["responses"][200]["content"]> extends { ok: true; data: infer Data } ? Data
    : ContentOf<Operation["responses"][200]["content"]>;
type ContentOf<Content> = Content[keyof Content];

type Direction = "input" | "answer";
type Scalar = string | number | boolean | null;
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;

/** A union of which later versions may know more members, without the part that leaves it open. */
type Known<T> = T extends string ? Equal<T, string & Record<never, never>> extends true ? never : T : T;
/** JSON has text for a date, and no undefined. */
type Scalars<T> = Known<Extract<T extends Date ? string : T, Scalar>>;
type Items<T> = T extends readonly (infer Item)[] ? Item : never;
type Objects<T> = Exclude<T, Scalar | undefined | readonly unknown[] | Date>;

/** Where a type of the document and one of the client differ; what the document leaves open agrees with anything. */
export type Different<Doc, Own, Path extends string, To extends Direction> = IsOpen<Doc> extends true ? never
  :
    | ScalarsDifferent<Scalars<Doc>, Scalars<Own>, Path, To>
    | (IsNever<Items<Doc>> | IsNever<Items<Own>> extends true ? never
      : IsNever<Items<Doc>> | IsNever<Items<Own>> extends false
        ? Different<Items<Doc>, Items<Own>, `${Path}[]`, To>
      : `${Path}: only one side has a list`)
    | (IsNever<Objects<Doc>> | IsNever<Objects<Own>> extends true ? never
      : IsNever<Objects<Doc>> | IsNever<Objects<Own>> extends false
        ? MembersDifferent<Objects<Doc>, Objects<Own>, Path, To>
      : `${Path}: only one side has an object`);

/** Answers have the same values. An input takes the same values; null only where it means more than "left out". */
type ScalarsDifferent<Doc, Own, Path extends string, To extends Direction> = To extends "answer"
  ? Equal<Doc, Own> extends true ? never : Path
  : [Own] extends [Doc] ? Equal<Exclude<Doc, null>, Exclude<Own, null>> extends true ? never : Path
  : Path;

type MembersDifferent<Doc, Own, Path extends string, To extends Direction> =
  | `${Path}.${Exclude<NamesOf<Doc>, NamesOf<Own>>}: unknown to the client`
  | `${Path}.${Exclude<NamesOf<Own>, NamesOf<Doc>>}: unknown to the document`
  | {
    [Name in NamesOf<Doc> & NamesOf<Own>]:
      | Different<MemberOf<Doc, Name>, MemberOf<Own, Name>, `${Path}.${Name}`, To>
      | (Name extends WrongPresence<Doc, Own, To> ? `${Path}.${Name}: optional on one side` : never);
  }[NamesOf<Doc> & NamesOf<Own>];

/** Answers require the same members; an input must bring what the document requires. */
type WrongPresence<Doc, Own, To extends Direction> =
  | Exclude<RequiredOf<Doc>, RequiredOf<Own>>
  | (To extends "answer" ? Exclude<RequiredOf<Own>, RequiredOf<Doc>> : never);

/** The names of all members of a union of objects. */
type NamesOf<T> = T extends unknown ? Extract<keyof T, string> : never;
/** What a member may be over a union of objects. */
type MemberOf<T, Name extends string> = T extends { [Key in Name]?: infer Value } ? Value : never;
/** The members that every object of a union has. */
type RequiredOf<T> = Exclude<NamesOf<T>, OptionalOf<T, NamesOf<T>>>;
type OptionalOf<T, Names extends string> = T extends unknown ? {
    [Name in Names]: T extends { [Key in Name]: unknown }
      ? Nothing extends Pick<T, Name & keyof T> ? Name : never
      : Name;
  }[
    Names
  ]
  : never;

/** Any value, or an object with any members. */
type IsOpen<T> = unknown extends T ? true
  : string extends NamesOf<Objects<T>> ? unknown extends MemberOf<Objects<T>, string> ? true : false
  : false;
type IsNever<T> = [T] extends [never] ? true : false;
