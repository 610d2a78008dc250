// How pages read and write: through the endpoints of the API, called from within the process. An operator acts for an app
// and mode without an API key; otherwise a call is like one from outside, and also runs at the owner of the cell.

import { leftToGrant, takeForGrant } from "../../../src/audit/agent_grants.ts";
import { findPack } from "../../../src/domain/catalog/catalog.ts";
import { grantedUnits } from "../../../src/domain/credits/agent_cap.ts";
import { amountOf, decimalOf, numberOf } from "../../../src/domain/values/amount.ts";
import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { hashOf } from "../../../src/process/secrets/hash.ts";
import type { Serving } from "../../../src/cluster/service.ts";
import type { Caller } from "../../../src/tenant/registry.ts";
import type { Author, Values } from "../../../src/audit/audit.ts";
import { spendId, takeBackId } from "../../../src/audit/spent.ts";
import { type Answer, codeOf, valueOf } from "../../http/answer.ts";
import { dispatchAcross } from "../../http/across_stores.ts";
import { audited, isWrite, UNCERTAIN } from "../../http/audited.ts";
import { type Members, refuseForbiddenText } from "../../http/json_body.ts";
import type { Outcome } from "../../http/call.ts";
import { dispatch } from "../../http/dispatch.ts";
import type {
  AnswerOf,
  CallDefinition,
  InputOf,
  KeyedDefinition,
  KeylessDefinition,
} from "../../contract/definition.ts";
import { grantCredits } from "../../contract/credits.ts";
import type { Endpoint, KeylessEndpoint, StoreSource } from "../../http/endpoint_types.ts";
import { Refused } from "../../http/errors.ts";
import { checkInput } from "../../http/input.ts";
import { refusalOf, requestId } from "../../http/respond.ts";
import { mayMake, type Session } from "./session.ts";

/** Everything that endpoints work on: operators may call any of them. */
export type World = Serving;

/** An app in one mode, as in the paths of pages. */
export interface AppMode {
  readonly appId: string;
  readonly mode: "live" | "test";
}

/** The answer of an endpoint. */
export type ApiAnswer<T> = { readonly ok: true; readonly data: T } | {
  readonly ok: false;
  readonly error: Refusal;
};

/** The API's endpoints by their ids. */
interface Endpoints {
  readonly keyed: ReadonlyMap<string, Endpoint<World>>;
  readonly keyless: ReadonlyMap<string, KeylessEndpoint<World>>;
}

/** Endpoints by id. */
export function endpointsOf(
  keyed: readonly Endpoint<World>[],
  keyless: readonly KeylessEndpoint<World>[],
): Endpoints {
  const byId = <Each extends CallDefinition>(endpoints: readonly Each[]) =>
    new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]));
  return { keyed: byId(keyed), keyless: byId(keyless) };
}

/** The operator and the request that a call is made for. */
interface CallContext {
  readonly session: Session;
  /** Whether the operator may read prompts and responses. */
  readonly seesPrompts: boolean;
  /** The user of the page; null for none. */
  readonly userId: string | null;
  /** Units of credits that an agent may grant in a UTC day. */
  readonly agentGrants: number;
  /** The key of the form that was sent; null for a GET, which writes nothing. */
  readonly once: string | null;
}

/** Values for the audit log, beside the input of a write and the ids in its answer. */
interface AuditDetails {
  /** By default the user of the page. */
  readonly userId?: string | null;
  readonly before?: Values;
  readonly after?: Values;
}

/** Endpoints with the method POST that write nothing. */
const READS: ReadonlySet<string> = new Set(["explain", "canUse"]);
/** Endpoints that write nothing where `dryRun` is true. */
const MAY_RUN_DRY: ReadonlySet<string> = new Set(["aliasCustomer", "aliasCustomers"]);
/** Members of answers with prompts and responses. */
const PROMPTS: ReadonlySet<string> = new Set(["prompt", "promptPreview", "response"]);

/** Calls endpoints for one request to the console. */
export class ApiCaller {
  /** The running term of the page's app; for a page without an app, any. */
  readonly serving: World;
  /** Whether answers have null instead of prompts and responses. */
  readonly hidesPrompts: boolean;
  readonly #source: StoreSource<World>;
  readonly #endpoints: Endpoints;
  readonly #request: Request;
  readonly #context: CallContext;

  constructor(
    { serving, source }: { readonly serving: World; readonly source: StoreSource<World> },
    endpoints: Endpoints,
    request: Request,
    context: CallContext,
  ) {
    this.serving = serving;
    this.#source = source;
    this.hidesPrompts = !context.seesPrompts;
    this.#endpoints = endpoints;
    this.#request = request;
    this.#context = context;
  }

  /**
   * Calls an endpoint of an app, as with a secret key of its mode. A write happens once for each form that was sent: a
   * second one gets the answer of the first.
   *
   * @param input members of path, query and body in one object; undefined members are left out
   * @param once the key of the form; null for a read
   */
  async app<Call extends KeyedDefinition>(
    { appId, mode }: AppMode,
    { id }: Call,
    input: InputOf<Call>,
    once: string | null = null,
    details: AuditDetails = {},
  ): Promise<ApiAnswer<AnswerOf<Call>>> {
    const endpoint = this.#endpoints.keyed.get(id);
    if (endpoint === undefined) throw new Error(`No endpoint "${id}"`);
    const caller = this.serving.registry.operatorOf(appId, mode);
    if (caller === null) return refusedAs(new Refused("not_found", "No app has this appId"), this.#request);
    const sent = withoutUndefined(input);
    const isRead = endpoint.method === "GET" || READS.has(id) ||
      MAY_RUN_DRY.has(id) && sent["dryRun"] === true;
    return await this.#answer(async () => {
      const key = isRead ? null : once ?? this.#requireOnce(id);
      const call = {
        ...this.#checked(endpoint, sent),
        ...this.#onceOf(caller, id, sent, key),
        caller,
        endUser: null,
        url: this.#request.url,
        isCounted: true,
      };
      const run = () => dispatch(this.serving, call, this.#request);
      if (isRead) return await run();
      this.#requireRole(id);
      const isKept = endpoint.answersToken !== true;
      const userId = details.userId ?? this.#context.userId ?? textOr(sent["userId"]) ??
        textOr(sent["distinctId"]);
      const values = {
        before: details.before ?? null,
        after: (data: Values) => ({ ...plainValues(sent), ...details.after, ...idsOf(data) }),
      };
      const action = { ...this.#author, what: id, appId, mode, userId };
      const write = () => this.#withinCap(id, caller, sent, () => audited(this.serving, action, values, run));
      // No first answer is kept of a call that answers a secret.
      return isKept ? await write() : await this.#spending(id, write);
    });
  }

  /** Calls an endpoint of the admin API. A form that was sent writes once: a second write is refused. */
  async admin<Call extends KeylessDefinition>(
    { id }: Call,
    input: InputOf<Call>,
  ): Promise<ApiAnswer<AnswerOf<Call>>> {
    const endpoint = this.#endpoints.keyless.get(id);
    if (endpoint === undefined) throw new Error(`No endpoint "${id}"`);
    return await this.#answer(async () => {
      const call = endpoint.input === null
        ? { target: endpoint, members: {}, input: null }
        : this.#checked(endpoint, withoutUndefined(input));
      const run = () => dispatchAcross(this.#source, { ...call, caller: null }, this.#request, this.#author);
      return isWrite(endpoint, call.input) ? await this.#spending(id, run) : await run();
    });
  }

  /** Calls an endpoint of the admin API that answers lines of JSON, and waits for the last one, which has the result. */
  async lastLine<Call extends KeylessDefinition, Result>(
    { id }: Call,
    input: InputOf<Call>,
  ): Promise<ApiAnswer<Result>> {
    const endpoint = this.#endpoints.keyless.get(id);
    if (endpoint === undefined) throw new Error(`No endpoint "${id}"`);
    try {
      const call = { ...this.#checked(endpoint, withoutUndefined(input)), caller: null };
      const outcome = await dispatchAcross(this.#source, call, this.#request, this.#author);
      if (!(outcome instanceof Response)) return valueOf(outcome) as ApiAnswer<Result>;
      const { result, error } = JSON.parse((await outcome.text()).trimEnd().split("\n").at(-1) ?? "{}");
      return error === undefined ? { ok: true, data: result } : { ok: false, error };
    } catch (error) {
      return refusedAs(error, this.#request);
    }
  }

  /** Runs a write of the admin API, which has no idempotency keys, unless the form was sent before. */
  async #spending(id: string, run: () => Promise<Outcome>): Promise<Answer> {
    const once = this.#requireOnce(id);
    this.#requireRole(id);
    const { serving } = this;
    const { session } = this.#context;
    const key = `${session.id}.${once}.${id}`;
    if (!await spendId(serving, key, session.until)) {
      throw new Refused("idempotency_conflict", "This form was already sent");
    }
    try {
      const answer = valueOf(await run());
      // A refused form may be sent again. A form with an unknown result may not: the write may have been made.
      if (!answer.ok && !UNCERTAIN.has(codeOf(answer))) await takeBackId(serving, key);
      return answer;
    } catch (error) {
      if (error instanceof Refused) await takeBackId(serving, key);
      throw error;
    }
  }

  /** What an agent may still grant today, in units; null for other roles. */
  async unitsLeft(): Promise<number | null> {
    const { session: { operator: { role, name: who } }, agentGrants } = this.#context;
    if (role !== "agent") return null;
    return numberOf(await leftToGrant(this.#source.requireAll(), { who, cap: amountOf(agentGrants) }));
  }

  get #author(): Author {
    return { who: this.#context.session.operator.name, via: "console" };
  }

  /** The key of the form that was sent. A GET has none, and can't write whatever a page calls. */
  #requireOnce(id: string): string {
    const { once } = this.#context;
    if (once === null) throw new Error(`The endpoint "${id}" writes, and no form was sent`);
    return once;
  }

  /** Refuses writes that the operator's role does not allow, whatever a page checks. */
  #requireRole(id: string): void {
    if (!mayMake(this.#context.session, { id })) {
      throw new Refused("forbidden", "Your role does not allow this change");
    }
  }

  /** Runs a write. A grant of an agent is refused above the cap of the day, and counts toward it. */
  async #withinCap(
    id: string,
    { realm: { catalog } }: Caller,
    input: Members,
    run: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const { session, agentGrants, once } = this.#context;
    if (session.operator.role !== "agent" || id !== grantCredits.id) return await run();
    const pack = findPack(catalog, String(input["packId"]));
    // The grant itself refuses an unknown pack.
    if (pack === null) return await run();
    const { quantity } = input;
    const units = grantedUnits(pack, typeof quantity === "number" ? amountOf(quantity) : 0n);
    const cap = amountOf(agentGrants);
    const who = session.operator.name;
    const key = `${session.id}.${once}.units`;
    const all = this.#source.requireAll();
    const taken = await takeForGrant(this.serving, all, { who, units, cap, key, until: session.until });
    if ("left" in taken) {
      const [asked, left, all] = [units, taken.left, cap].map(decimalOf);
      throw new Refused(
        "forbidden",
        `This grant is ${asked} units. ${left} of the ${all} units that you may grant today are left`,
      );
    }
    return await settled(run, taken.giveBack);
  }

  /** The error in the input of an endpoint, before a call; null for valid input. */
  inputFault({ id }: CallDefinition, input: unknown): Refusal | null {
    const endpoint = this.#endpoints.keyed.get(id) ?? this.#endpoints.keyless.get(id);
    if (endpoint === undefined) throw new Error(`No endpoint "${id}"`);
    try {
      if (endpoint.input !== null) this.#checked(endpoint, withoutUndefined(input));
      return null;
    } catch (error) {
      return refusalOf(requestId(this.#request), error);
    }
  }

  #checked<Each extends CallDefinition>(endpoint: Each, members: Members) {
    refuseForbiddenText(members);
    return { target: endpoint, members, input: checkInput(endpoint, members) };
  }

  #onceOf({ realm }: Caller, id: string, members: Members, once: string | null) {
    if (once === null) return { idempotent: null };
    const requestHash = hashOf(`console ${id}\n${JSON.stringify(members)}`);
    return { idempotent: { realm: realm.realm, key: `console-${id}-${once}`, requestHash } };
  }

  async #answer<T>(run: () => Promise<Outcome>): Promise<ApiAnswer<T>> {
    try {
      const answer = valueOf(await run());
      if (answer.ok && this.hidesPrompts) return { ok: true, data: withoutPrompts(answer.data) as T };
      return answer as ApiAnswer<T>;
    } catch (error) {
      return refusedAs(error, this.#request);
    }
  }
}

/** Runs a grant, and gives its units back where it is certain that nothing was granted. */
async function settled(run: () => Promise<Outcome>, giveBack: () => Promise<void>): Promise<Outcome> {
  try {
    const outcome = await run();
    const answer = valueOf(outcome);
    if (!answer.ok && !UNCERTAIN.has(codeOf(answer))) await giveBack();
    return outcome;
  } catch (error) {
    if (error instanceof Refused) await giveBack();
    throw error;
  }
}

function refusedAs(error: unknown, request: Request): { readonly ok: false; readonly error: Refusal } {
  return { ok: false, error: refusalOf(requestId(request), error) };
}

/** The same data with null for every prompt and response. */
function withoutPrompts(data: unknown): unknown {
  if (Array.isArray(data)) return data.map(withoutPrompts);
  if (typeof data !== "object" || data === null) return data;
  return Object.fromEntries(
    Object.entries(data).map((
      [name, value],
    ) => [name, PROMPTS.has(name) && typeof value === "string" ? null : withoutPrompts(value)]),
  );
}

/** The input for the audit log, without prompts and without the user, which the log has apart. */
function plainValues(members: Members): Values {
  const { userId: _user, distinctId: _distinct, ...rest } = members;
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !PROMPTS.has(name)));
}

/** The ids in an answer, without users. */
function idsOf(data: Values): Values {
  return Object.fromEntries(
    Object.entries(data).filter(([name, value]) =>
      name.endsWith("Id") && name !== "userId" && typeof value === "string"
    ),
  );
}

function textOr(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function withoutUndefined(input: unknown): Members {
  return Object.fromEntries(Object.entries(input as Members).filter(([, value]) => value !== undefined));
}
