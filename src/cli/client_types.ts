// `deno task client:types`: writes the wire types of both clients, in TypeScript and in Python, from the API's OpenAPI
// document, so that no type of an input or answer is written twice. A test fails when a file is out of date.

import { SURFACE } from "../../routes/surface.ts";
import { makeDocument } from "../../routes/reference/openapi.ts";
import { makeProgram, openShell, runProgram, type Shell } from "./shell.ts";
import type { Places } from "./schema_book.ts";
import { writePythonTypes } from "./python_types.ts";
import { writeTypes } from "./type_writer.ts";

const FILE = "src/client/wire_types.ts";
const PYTHON_FILE = "src/clients/python/holdfast/types.py";

/**
 * The exported types by their places in the document: a record, or a part of one. `()` after an operation is its query,
 * `.` a member, `[]` an item of a list.
 */
const TYPES: Places = {
  ServiceErrorCode: ["Error.error.code", "Every error code of the service."],
  Mode: ["AliasReport.mode", "The mode of a key. Live and test share the catalog and no data."],
  Unit: ["Unit", "The unit of a limit group or credit balance."],
  Metadata: [
    "ReserveRequest.metadata",
    "Metadata of an event: any JSON object of up to 16 KiB. Limit groups can match its members.",
  ],
  MatchRule: ["MatchRule"],
  Period: ["Period", "The current window of a plan."],
  Counter: ["Counter", "The usage of a limit group in its current window."],
  CounterWindow: ["Counter.window", "Of a rate or a concurrency limit: what counts now."],
  CreditBalance: ["CreditBalance", "A balance of credits."],
  SubscriptionRef: ["SubscriptionReference", "A subscription in a report."],
  FeatureValue: ["FeatureValue", "The value of a feature."],
  Feature: ["Feature", "A feature in force."],
  DuplicateActiveSubscriptions: ["DuplicateActiveSubscriptions", "Several active subscriptions of one user."],

  HeldSize: [
    "CanUseRequest.options",
    "Size of future work. Which member counts depends on each group's unit.",
  ],
  ModelUsage: ["CommitRequest.usage"],
  Fit: ["ReserveRequest.fit", "How a call may be made smaller until it is allowed."],
  Fitted: ["ReserveResponseData.fitted", "What a call was made to fit to."],
  "ReserveOptions extends HeldSize": ["ReserveRequest.options", "Options of a reserve."],
  ReserveReason: ["CanUseResponseData.reasons[]", "Why a reserve is not allowed."],
  ReservedGroup: ["ReserveResponseData.groups[]", "A limit group in a reserve's answer."],
  LevelGroups: ["ReserveResponseData.levels[]", "The limit groups of a user above."],
  RunState: ["ReserveResponseData.runs[]", "The limits of a run after the call."],
  ReserveReply: ["ReserveResponseData", "The answer to a reserve as the service writes it."],
  Extra: ["CommitRequest.extra", "Amounts to add to what was held; negative ones subtract."],
  Actual: ["CommitRequest.actual", "Final amounts, in place of what was held."],
  CommitOptions: ["CommitRequest.options", "Options of a commit: what the work used."],
  Cost: ["CommitResponseData.cost", "What an event cost."],
  CreditCost: ["CreditCost", "What a call costs in credits."],
  Warning: ["CommitResponseData.warnings[]", "A warning of an answer, such as `unpriced_model`."],
  CommittedGroup: ["CommitResponseData.groups[]", "A limit group after a commit."],
  Uncovered: ["EventDetail.uncovered", "By unit, the amount that neither plan nor credits could cover."],
  CommitAnswer: ["CommitResponseData", "The answer to a commit."],
  ReleaseOptions: ["ReleaseRequest.options", "Options of a release."],
  TrackOptions: ["TrackRequest.options", "Options of a track."],
  OwnShare: [
    "TrackResponseData.levels[].counters[].member",
    "The user's own share of a limit group of a user above.",
  ],
  "LevelCounter extends Counter": [
    "TrackResponseData.levels[].counters[]",
    "The usage of a limit group of a user above.",
  ],
  TrackAnswer: ["TrackResponseData", "The answer to a track."],
  BatchResult: ["TrackBatchResponseData.results[]", "The result of one event of a batch."],
  CreditOffer: ["CanUseResponseData.details[].creditPacks[]", "Credits of a pack that could pay."],
  UseDetail: ["CanUseResponseData.details[]", "A limit group in the answer to a can-use."],
  CanUseAnswer: ["CanUseResponseData", "The answer to a can-use: what a reserve would answer now."],
  ExplainedGroup: ["ExplainResponseData.groups[]", "A limit group of the current plan in an explanation."],
  ExplainedCredit: ["ExplainResponseData.credits[]", "A balance in an explanation."],
  ExplainedRate: ["ExplainedRate", "What a call costs in credits, and how that adds up."],
  Explanation: ["ExplainResponseData", "The answer to an explain: what a reserve would answer now, and why."],
  Usage: ["GetUsageResponseData", "The counters and credits of a user."],
  OverageQuery: ["listOverage()", "Which hours of overage to list."],
  OverageHour: ["ListOverageResponseData.overage[]", "What a limit group sold past its quota in an hour."],
  OverageList: ["ListOverageResponseData", "What limit groups sold to a user past their quotas."],
  SpendCapInput: ["SetSpendCapRequest", "A user's own cap to set."],
  SpendCap: ["SetSpendCapResponseData", "A user's own cap on overage."],
  UserFeatures: ["ListFeaturesResponseData", "The features of a user."],
  UserFeature: ["GetFeatureResponseData", "One feature of a user."],

  UserKeyInput: ["CreateUserKeyRequest", "A key of a user to create."],
  CreatedUserKey: ["CreateUserKeyResponseData", "A new key of a user."],
  UserKey: ["ListUserKeysResponseData.keys[]", "A key of a user, without the key itself."],

  SubscriptionInput: ["UpsertSubscriptionRequest", "A subscription to write."],
  Subscription: ["Subscription", "A subscription."],
  ScheduledChange: ["Subscription.scheduled", "A change of plan that was asked for ahead."],
  CancelInput: ["cancelSubscription()", "A subscription to end."],
  CanceledSubscription: ["CancelSubscriptionResponseData", "The answer to a cancel."],
  SubscriptionEvent: ["GetUserResponseData.history[]", "An entry of a user's subscription history."],
  User: ["GetUserResponseData", "Everything about a user."],
  ParentInput: ["SetParentRequest", "The parent of a user, and the shares of its pools."],
  ParentAnswer: ["SetParentResponseData", "A user with its path."],
  ChildrenQuery: ["listChildren()", "Which children to list."],
  Child: ["ListChildrenResponseData.children[]", "A user directly below another one."],
  ChildrenPage: ["ListChildrenResponseData", "A page of children."],
  MembersQuery: ["listMembers()", "Which members to list."],
  Member: ["ListMembersResponseData.members[]", "What a user below used of a limit group."],
  MembersPage: ["ListMembersResponseData", "A page of members."],
  LimitGroup: ["Plan.limits[]", "A limit of a plan."],
  Plan: ["Plan", "A plan on offer."],
  Rate: ["Rate", "A row of the rate card: what the calls of an event cost in credits."],

  RunLimit: ["RunLimit", "A limit of a run."],
  RunInput: ["CreateRunRequest", "A run to open."],
  Run: ["Run", "A run: a task with limits that its calls share."],
  "RunDetail extends Run": ["RunDetail", "A run with its metadata."],
  RunQuery: ["listRuns()", "Which runs to list."],
  RunPage: ["ListRunsResponseData", "A page of runs."],

  GrantInput: ["GrantCreditsRequest", "Credits to grant."],
  GrantedBalance: ["GrantCreditsResponseData.balances[]", "A balance that a grant issued."],
  GrantAnswer: ["GrantCreditsResponseData"],
  ExtendInput: ["ExtendCreditsRequest", "A balance with its new expiry."],
  ExtendAnswer: ["ExtendCreditsResponseData", "The answer to an extension."],
  RevokeInput: ["RevokeCreditsRequest", "A balance to revoke."],
  RevokeAnswer: ["RevokeCreditsResponseData", "The answer to a revoke."],
  CreditQuery: ["listCredits()", "Which balances to list."],
  CreditList: ["ListCreditsResponseData", "A user's balances."],
  LedgerQuery: ["listLedger()", "Which ledger entries to list."],
  LedgerEntry: ["ListLedgerResponseData.entries[]", "A movement of credits."],
  LedgerPage: ["ListLedgerResponseData", "A page of the ledger."],

  TopUpInput: ["PutTopUpRequest", "What a user buys automatically, and when."],
  TopUpSetting: ["TopUpSetting", "The top-up setting of a user."],
  DeletedTopUp: ["DeleteTopUpResponseData", "A removed top-up setting."],
  TopUpQuery: ["listTopUps()", "Which top-ups to list."],
  TopUp: ["TopUp", "A purchase of credits that a setting made."],
  TopUpPage: ["ListTopUpsResponseData", "A page of top-ups."],

  AliasPair: ["AliasCustomersRequest.pairs[]", "Two ids of one user."],
  "AliasInput extends AliasPair": ["AliasCustomerRequest", "Two ids to merge."],
  AliasReport: ["AliasReport", "The report of a merge."],
  AliasErrorCode: ["RefusedPair.error.code", "Why a pair of many was not merged."],
  AliasResult: ["AliasCustomersResponseData.results[]", "The result of one pair of many."],
  AliasManyAnswer: ["AliasCustomersResponseData", "The results of many pairs."],
  Customer: ["GetCustomerResponseData", "The user behind an id."],

  ComposeUsage: ["Generated.usage", "What a generation cost."],
  Generated: ["Generated", "A generation."],
  OptedOut: ["OptedOut", "No generation: the user opted out of AI personalization."],

  Properties: ["CaptureRequest.properties", "Properties by name, up to 16 KiB as JSON."],
  CaptureInput: ["CaptureRequest", "Something that a person did."],
  CaptureAnswer: ["CaptureResponseData", "The answer to a capture. People who opted out get the same."],
  IdentifyInput: ["IdentifyRequest", "What you know about the person behind an id."],
  IdentifyAnswer: ["IdentifyResponseData", "The answer to an identify."],
  PersonAliasInput: ["AliasPersonRequest", "Two ids of one person."],
  PersonAliasAnswer: ["AliasPersonResponseData", "The answer to an alias of two people."],
  ConsentScope: ["isOptedOut().scope", "What a person can opt out of."],
  PersonExportLink: ["ExportPersonResponseData", "A link to the export of a person."],
  PersonExport: ["DownloadExportResponse", "Everything known about a person."],
  DeletionStatus: ["GetDeletionStatusResponseData", "The state of an erasure."],

  EventQuery: ["listEvents()", "Which events to list."],
  MeteredEvent: ["Event", "An event in a list."],
  EventPage: ["ListEventsResponseData", "A page of events."],
  ChargedAmount: ["EventDetail.amounts[]", "What an event took from one limit group or one credit balance."],
  "EventDetail extends MeteredEvent": ["EventDetail", "An event with its details."],
  RefusalQuery: ["listRefusals()", "Which refused calls to list."],
  Refusal: [
    "ListRefusalsResponseData.refusals[]",
    "Refused calls of a user with the same event and reasons, within one hour (UTC).",
  ],
  RefusalPage: ["ListRefusalsResponseData", "A page of refused calls."],
  TestClockAnswer: ["GetTestClockResponseData", "The time of test mode."],

  ThresholdMessageData: ["ThresholdData", "The data of a message about a threshold."],
  PaceMessageData: ["PaceData", "The data of a message about a pace."],
  CreditsMessageData: ["CreditsData", "The data of a message about a credit balance."],
  OverageMessageData: [
    "UsageOverageStartedMessage.data",
    "The data of a message about overage that begins, or reaches its cap.",
  ],
  TopUpMessageData: ["TopupPaidMessage.data", "The data of a message about an automatic top-up."],
  SubscriptionMessageData: ["SubscriptionData", "The data of a message about a subscription."],
};

/** Types that the client writes differently than the document, by type and member. */
const OWN = {
  // Here null means more than leaving the member out.
  "SubscriptionInput.customLimits": "Readonly<Record<string, { readonly quota: number }>> | null",
  "SubscriptionInput.customFeatures": "Readonly<Record<string, FeatureValue>> | null",
  "SubscriptionInput.cycleStart": "Moment | null",
  "SubscriptionInput.at": `Moment | "period_end"`,
  "ParentInput.parentId": "string | null",
  "ParentInput.memberLimits": "Readonly<Record<string, { readonly quota: number }>> | null",
  "GrantInput.expiresAt": "Moment | null",
  // Any object type fits, also one without an index signature.
  "CommitOptions.providerUsage": "object | null",
  "TrackOptions.providerUsage": "object | null",
  // The client sends strings only; the service answers null for a missing one.
  "AliasResult.from": "string | null",
  "AliasResult.to": "string | null",
};

/** The text of the client's wire types. */
export function clientTypes(): string {
  return writeTypes(makeDocument(SURFACE), TYPES, OWN);
}

/** The text of the types of the client in Python. */
export function pythonTypes(): string {
  return writePythonTypes(makeDocument(SURFACE), TYPES);
}

async function writeFiles(shell: Shell): Promise<void> {
  for (const [file, text] of [[FILE, clientTypes()], [PYTHON_FILE, pythonTypes()]] as const) {
    await Deno.writeTextFile(new URL(`../../${file}`, import.meta.url), text);
    shell.print(`Wrote ${file}`);
  }
}

if (import.meta.main) {
  const shell = openShell([]);
  const program = makeProgram(
    shell,
    "deno task client:types",
    "Writes the clients' types of inputs and answers.",
  )
    .action(() => writeFiles(shell));
  Deno.exit(await runProgram(program, Deno.args, shell));
}
