// How pages read and write: by the same endpoints as the API, called from within the process. An operator acts for an app
// and mode without one of its keys; everything else about a call is as from outside, its way to the owner of the cell too.

import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { hashOf } from "../../../src/process/secrets/hash.ts";
import type { Serving } from "../../../src/cluster/service.ts";
import type { Caller } from "../../../src/tenant/registry.ts";
import type { Actor, Values } from "../../../src/audit/audit.ts";
import { spendId, takeBackId } from "../../../src/audit/spent.ts";
import { type Answer, codeOf, valueOf } from "../../http/answer.ts";
import { audited, dispatchAudited, isWrite, UNCERTAIN } from "../../http/audited.ts";
import { type Members, refuseForbiddenText } from "../../http/body.ts";
import type { Outcome } from "../../http/call.ts";
import { dispatch } from "../../http/dispatch.ts";
import type { CallDefinition } from "../../contract/definition.ts";
import type { Endpoint, KeylessEndpoint } from "../../http/endpoint_types.ts";
import { Refused } from "../../http/errors.ts";
import { checkInput } from "../../http/input.ts";
import { refusalOf, requestId } from "../../http/respond.ts";
import { mayChange, type Session } from "./session.ts";

/** The whole of a running term: operators may ask any endpoint. */
export type World = Serving;

/** An app in one mode, as addresses of pages name it. */
export interface AppMode {
  readonly appId: string;
  readonly mode: "live" | "test";
}

/** What an endpoint answered. */
export type Asked<T> = { readonly ok: true; readonly data: T } | {
  readonly ok: false;
  readonly error: Refusal;
};

/** The API's endpoints by their ids. */
export interface Endpoints {
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

/** On whose behalf endpoints are asked, and in answer to what. */
export interface Asker {
  readonly session: Session;
  /** Whether this person may read what end users asked models, and were answered. */
  readonly seesPrompts: boolean;
  /** The user that the page is about; null for none. */
  readonly userId: string | null;
  /** The key of the form that was sent; null for a page that is looked at, which writes nothing. */
  readonly once: string | null;
}

/** What the audit log is told of a write, beside what was sent and the ids that were answered. */
export interface Telling {
  /** By default the user that the page is about. */
  readonly userId?: string | null;
  readonly before?: Values;
  readonly after?: Values;
}

/** Endpoints that are asked with POST and write nothing. */
const READS: ReadonlySet<string> = new Set(["explain", "canUse"]);
/** Endpoints that write nothing where `dryRun` is true. */
const MAY_RUN_DRY: ReadonlySet<string> = new Set(["aliasCustomer", "aliasCustomers"]);
/** Members of answers that hold what end users wrote. */
const PROMPTS: ReadonlySet<string> = new Set(["prompt", "promptPreview", "response"]);

/** Asks endpoints on behalf of one request to the console. */
export class Asking {
  readonly serving: World;
  /** Whether answers hold null in place of prompts and responses, whatever is logged. */
  readonly hidesPrompts: boolean;
  readonly #endpoints: Endpoints;
  readonly #request: Request;
  readonly #asker: Asker;

  constructor(serving: World, endpoints: Endpoints, request: Request, asker: Asker) {
    this.serving = serving;
    this.hidesPrompts = !asker.seesPrompts;
    this.#endpoints = endpoints;
    this.#request = request;
    this.#asker = asker;
  }

  /**
   * Calls an endpoint of an app, as with a secret key of its mode. A write happens once for each form that was sent: a
   * second one gets the answer of the first.
   *
   * @param members those of path, query and body in one object; undefined ones are left out
   * @param once the key of the form; null for a read
   */
  async app<T>(
    { appId, mode }: AppMode,
    id: string,
    members: Members,
    once: string | null = null,
    telling: Telling = {},
  ): Promise<Asked<T>> {
    const endpoint = this.#endpoints.keyed.get(id);
    if (endpoint === undefined) throw new Error(`No endpoint "${id}"`);
    const caller = this.serving.registry.operatorOf(appId, mode);
    if (caller === null) return refusedAs(new Refused("not_found", "No app has this appId"), this.#request);
    const sent = withoutUndefined(members);
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
      this.#requireRole();
      const userId = telling.userId ?? this.#asker.userId ?? textOr(sent["userId"]) ??
        textOr(sent["distinctId"]);
      const told = {
        before: telling.before ?? null,
        after: (data: Values) => ({ ...plainValues(sent), ...telling.after, ...idsOf(data) }),
      };
      return await audited(this.serving, { ...this.#actor, what: id, appId, mode, userId }, told, run);
    });
  }

  /** Calls an endpoint of the admin API. A write happens once for each form that was sent: a second one is refused. */
  async admin<T>(id: string, members: Members = {}): Promise<Asked<T>> {
    const endpoint = this.#endpoints.keyless.get(id);
    if (endpoint === undefined) throw new Error(`No endpoint "${id}"`);
    return await this.#answer(async () => {
      const call = endpoint.input === null
        ? { target: endpoint, members: {}, input: null }
        : this.#checked(endpoint, withoutUndefined(members));
      const run = () => dispatchAudited(this.serving, { ...call, caller: null }, this.#request, this.#actor);
      return isWrite(endpoint, call.input) ? await this.#spending(id, run) : await run();
    });
  }

  /** Runs a write of the admin API, whose endpoints know no idempotency keys, unless the form was sent before. */
  async #spending(id: string, run: () => Promise<Outcome>): Promise<Answer> {
    const once = this.#requireOnce(id);
    this.#requireRole();
    const { serving } = this;
    const { session } = this.#asker;
    const key = `${session.id}.${once}.${id}`;
    if (!await spendId(serving, key, session.until)) {
      throw new Refused("idempotency_conflict", "This form was sent before, and what it says happens once");
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

  get #actor(): Actor {
    return { who: this.#asker.session.operator.name, via: "console" };
  }

  /** The key of the form that was sent; a page that is looked at has none, and writes nothing whatever it asks. */
  #requireOnce(id: string): string {
    const { once } = this.#asker;
    if (once === null) throw new Error(`The endpoint "${id}" writes, and no form was sent`);
    return once;
  }

  /** Keeps a role that only looks from writing, whatever a page forgets. */
  #requireRole(): void {
    if (!mayChange(this.#asker.session)) {
      throw new Refused("forbidden", "Your role looks at everything and changes nothing");
    }
  }

  /** What is wrong with the input of an endpoint before it is called; null for nothing. */
  misfitOf(id: string, members: Members): Refusal | null {
    const endpoint = this.#endpoints.keyed.get(id) ?? this.#endpoints.keyless.get(id);
    if (endpoint === undefined) throw new Error(`No endpoint "${id}"`);
    try {
      if (endpoint.input !== null) this.#checked(endpoint, withoutUndefined(members));
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

  async #answer<T>(run: () => Promise<Outcome>): Promise<Asked<T>> {
    try {
      const answer = valueOf(await run());
      if (answer.ok && this.hidesPrompts) return { ok: true, data: withoutPrompts(answer.data) as T };
      return answer as Asked<T>;
    } catch (error) {
      return refusedAs(error, this.#request);
    }
  }
}

function refusedAs(error: unknown, request: Request): { readonly ok: false; readonly error: Refusal } {
  return { ok: false, error: refusalOf(requestId(request), error) };
}

/** The same data with null for every text that an end user or a model wrote. */
function withoutPrompts(data: unknown): unknown {
  if (Array.isArray(data)) return data.map(withoutPrompts);
  if (typeof data !== "object" || data === null) return data;
  return Object.fromEntries(
    Object.entries(data).map((
      [name, value],
    ) => [name, PROMPTS.has(name) && typeof value === "string" ? null : withoutPrompts(value)]),
  );
}

/** What the audit log keeps of what was sent, where nothing else is told: whom it was about stands elsewhere. */
function plainValues(members: Members): Values {
  const { userId: _user, distinctId: _distinct, ...rest } = members;
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !PROMPTS.has(name)));
}

/** The ids that an answer gives out. */
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

function withoutUndefined(members: Members): Members {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
