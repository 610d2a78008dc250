// Compose: fills the template of a type with a user's data, asks a model, and checks its answer. The user's turn then
// meters the result. No mailbox is held while the model works.

import type { Realm } from "../../../actors/call.ts";
import type { Budget } from "../../../actors/budget.ts";
import type { Directory } from "../../../actors/directory.ts";
import { Unavailable } from "../../../actors/port.ts";
import type { Term } from "../../../actors/term.ts";
import { type Amount, wholeOf } from "../../domain/values/amount.ts";
import type { GenerateInput } from "../../domain/metering/generate.ts";
import { refusedAtCap } from "../../domain/state/refused_call.ts";
import { centsOf, type Usage } from "../../domain/pricing/usage.ts";
import { readReport } from "../../domain/pricing/provider_usage.ts";
import type { ComposeType, DataSource } from "../../domain/catalog/catalog.ts";
import { type Refusal, refusal } from "../../domain/values/refusal.ts";
import { answered, refused, type Result } from "../../domain/state/result.ts";
import type { UserAnswer } from "../../domain/usage.ts";
import { SCOPE_BITS } from "../../domain/state/user.ts";
import type { Features, ModelServer } from "../../process/features.ts";
import { COMPOSE_LIMITS } from "../../process/limits.ts";
import { log } from "../../process/log.ts";
import { readConsent } from "../../storage/queries/consent.ts";
import type { Database } from "../../storage/database.ts";
import type { InCell } from "../../storage/nodes/cell_store.ts";
import { unitePeople } from "../../people/link.ts";
import { askModel, type ModelAnswer, ModelFailure, type Question } from "./model_client.ts";
import {
  isStrictSchema,
  type JsonObject,
  type OutputReader,
  outputReaderOf,
} from "../../process/json_schema.ts";
import { readSource, type WireViews } from "./sources.ts";
import { DATA_RULE, fillTemplate, placesOf } from "./template.ts";

/** A call, with the functions that show records on the wire. */
interface ComposeCall {
  readonly realm: Realm;
  readonly userId: string;
  readonly type: string;
  /** The JSON text of each var. */
  readonly vars: ReadonlyMap<string, string>;
  readonly views: WireViews;
}

/** The output of a model, and the generation to meter. */
interface Composed {
  readonly output: JsonObject;
  readonly generation: GenerateInput;
}

/** What compose uses. */
export interface ComposeWorld {
  readonly term: ComposeTerm;
  readonly database: Database;
  readonly inCell: InCell;
  readonly features: Pick<Features, "modelServer">;
}

type ComposeTerm = Pick<Term, "flush" | "spend" | "ended"> & {
  readonly budget: Pick<Budget, "refusal" | "aiRefusal">;
  readonly directory: Pick<Directory, "runById" | "countRefused">;
};

/**
 * Composes; null for a user who opted out. Refusals are tested in this order: unknown type, opt-out, missing vars, no model
 * server, caps, unusable schema.
 */
export async function compose(world: ComposeWorld, call: ComposeCall): Promise<Result<Composed | null>> {
  const { term, database, features } = world;
  const { realm, userId } = call;
  const type = realm.catalog.composeTypes.get(call.type);
  if (type === undefined) return refused(refusal("not_found", "Compose type not found"));

  // Afterwards the tables have every opt-out and every alias that was acknowledged before this call.
  await term.flush();
  const { optedOut } = await readConsent(database, realm.realm, userId);
  if ((optedOut & SCOPE_BITS.ai_personalization) !== 0) return answered(null);

  const missing = missingVars(type, call.vars);
  if (missing.length > 0) {
    return refused(lackOf(missing));
  }
  const { modelServer } = features;
  if (modelServer === null) {
    return refused(
      refusal("not_implemented", "Compose is off: set OPENAI_API_KEY to the key of a model server"),
    );
  }
  const limit = term.budget.refusal(realm.caps, realm.mode) ?? term.budget.aiRefusal(realm.caps);
  if (limit !== null) {
    const call = refusedAtCap(eventOf(type), limit.code, realm.now());
    const counted = term.directory.countRefused(realm, userId, call);
    // A call that can't be counted is refused all the same.
    await Promise.all([term.flush(), counted.catch(() => {})]);
    return refused(limit);
  }
  const reader = outputReaderOf(type);
  if (reader === null) return refused(failed(type, "The output schema of this type cannot be used"));

  const user = await term.directory.runById(userId, { realm, name: "user", input: {} });
  if (!user.ok) return user;
  const prompt = await fillPrompt(world, call, type, user.answer);
  return await generate({ term, realm, type, reader, modelServer, user: user.answer, prompt });
}

/** The event type that a generation is metered under. */
function eventOf({ name }: ComposeType): string {
  return `compose.${name}`;
}

/** The refusal of a call with missing vars: names each of them. */
function lackOf(names: readonly string[]): Refusal {
  const details = names.map((name) => ({ path: `vars.${name}`, message: "is required" }));
  return refusal("invalid_request", `vars: missing ${names.join(", ")}`, details);
}

/** The vars that a call lacks. A data source takes precedence over a var of the same name. */
function missingVars({ prompt, dataSources = [] }: ComposeType, vars: ComposeCall["vars"]): string[] {
  return placesOf(prompt).filter((name) => !dataSources.includes(name as DataSource) && !vars.has(name));
}

async function fillPrompt(
  world: ComposeWorld,
  { realm, vars, views }: ComposeCall,
  { prompt, dataSources = [] }: ComposeType,
  user: UserAnswer,
): Promise<string> {
  const { database } = world;
  const values = new Map(vars);
  const places = placesOf(prompt);
  for (const source of dataSources) {
    if (!places.includes(source)) continue;
    if (source === "user_attributes") await unitePeople(world, realm, user.userId);
    values.set(source, JSON.stringify(await readSource({ database, realm, user, views }, source)));
  }
  return fillTemplate(prompt, (name) => values.get(name) as string);
}

interface Asking {
  readonly term: ComposeTerm;
  readonly realm: Realm;
  readonly type: ComposeType;
  readonly reader: OutputReader;
  readonly modelServer: ModelServer;
  readonly user: UserAnswer;
  readonly prompt: string;
}

/** Generations in flight, by workspace. */
const underWay = new Map<string, number>();

/** Generations in flight in this process, and those of the workspace that has most. */
export function generationsUnderWay(): { readonly all: number; readonly ofWorkspaceMost: number } {
  const counts = [...underWay.values()];
  return { all: counts.reduce((sum, count) => sum + count, 0), ofWorkspaceMost: Math.max(0, ...counts) };
}

async function generate(asking: Asking): Promise<Result<Composed>> {
  const { workspaceId } = asking.realm.caps;
  const ofWorkspace = underWay.get(workspaceId) ?? 0;
  if (generationsUnderWay().all >= COMPOSE_LIMITS.callsMax) {
    throw new Unavailable("Too many generations are under way");
  }
  if (ofWorkspace >= COMPOSE_LIMITS.callsOfWorkspaceMax) {
    throw new Unavailable("Too many generations of this workspace are under way");
  }
  underWay.set(workspaceId, ofWorkspace + 1);
  const { deadlineMs = COMPOSE_LIMITS.deadlineMs } = asking.modelServer;
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new ModelFailure("Timed out")), deadlineMs);
  const signal = AbortSignal.any([deadline.signal, endOf(asking.term)]);
  try {
    return await askUntilMatch(asking, signal);
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    return refused(failed(asking.type, error.message));
  } finally {
    clearTimeout(timer);
    const left = (underWay.get(workspaceId) ?? 1) - 1;
    if (left === 0) underWay.delete(workspaceId);
    else underWay.set(workspaceId, left);
  }
}

/** Asks, and asks again when the answer does not match the schema; the workspace pays for every answer. */
async function askUntilMatch(asking: Asking, signal: AbortSignal): Promise<Result<Composed>> {
  const { term, realm, type, reader, modelServer, prompt } = asking;
  const question: Question = {
    model: type.model.id,
    instructions: DATA_RULE,
    prompt,
    schemaName: type.name,
    schema: type.outputSchema,
    isStrict: isStrictSchema(type.outputSchema),
    maxOutputTokens: type.maxOutputTokens,
    temperature: type.temperature,
  };
  for (let attempt = 0; attempt < COMPOSE_LIMITS.attemptsMax; attempt++) {
    const answer = await askModel(modelServer, question, signal);
    const usage = usageOf(type, answer);
    if (usage === null) continue;
    const output = answer.text === null ? null : reader(answer.text);
    if (output !== null) return answered({ output, generation: generationOf(asking, usage, output) });
    await term.spend(realm.caps.workspaceId, usage.costCents);
  }
  return refused(failed(type, "The model's answer did not match the output schema"));
}

interface Reported {
  readonly inputTokens: Amount;
  readonly outputTokens: Amount;
  readonly costCents: Amount;
  readonly usage: Usage;
}

/**
 * The usage that the model reported; details that contradict its totals are left out. Null without a report, and for one
 * whose total or details make its tokens a fraction: a generation is stored with whole tokens.
 */
function usageOf({ model }: ComposeType, { usage }: ModelAnswer): Reported | null {
  const reported = readReport(usage);
  if (reported === null) return null;
  const tokens = { inputTokens: reported.inputTokens ?? 0n, outputTokens: reported.outputTokens ?? 0n };
  if (Object.values(tokens).some((amount) => wholeOf(amount) !== amount)) return null;
  return { ...tokens, costCents: centsOf(model, reported), usage: reported };
}

function generationOf({ type, user, prompt }: Asking, usage: Reported, output: JsonObject): GenerateInput {
  const members = { type: type.name, model: type.model.id };
  return {
    ...members,
    event: eventOf(type),
    metadata: { text: JSON.stringify(members), members },
    ...usage,
    // Stored in the log of the event, where prompt logging allows it.
    prompt,
    response: JSON.stringify(output),
    askedOf: user.userKey,
  };
}

function failed(type: ComposeType, message: string): Refusal {
  log("warn", "A generation failed", { type: type.name, error: message });
  return refusal("generation_failed", message);
}

const ends = new WeakMap<ComposeTerm, AbortSignal>();

/** Aborts when the term ends: a process that stops does not wait for a model. */
function endOf(term: ComposeTerm): AbortSignal {
  let end = ends.get(term);
  if (end === undefined) {
    const controller = new AbortController();
    void term.ended.then(() => controller.abort(new Unavailable("The term ended")));
    ends.set(term, end = controller.signal);
  }
  return end;
}
