// How pages read and write: by the same operations as the API, called from within the process. An operator acts for an app
// and mode without one of its keys; everything else about a call is as from outside, its way to the owner of the cell too.

import type { Refusal } from "../../src/domain/refusal.ts";
import { hashOf } from "../../src/secrets/hash.ts";
import type { Serving } from "../../src/service/service.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { type Answer, readAnswer } from "../answer.ts";
import { type Members, refuseForbiddenText } from "../body.ts";
import type { Definition } from "../definition.ts";
import type { Endpoint, KeylessEndpoint } from "../endpoint_types.ts";
import { Refused } from "../errors.ts";
import { checkInput } from "../input.ts";
import { refusalOf, requestId } from "../respond.ts";
import { runAnywhere } from "../run_anywhere.ts";
import { runKeylessAnywhere } from "../run_keyless.ts";

/** An app in one mode, as addresses of pages name it. */
export interface AppMode {
  readonly appId: string;
  readonly mode: "live" | "test";
}

/** What an operation answered. */
export type Asked<T> = { readonly ok: true; readonly data: T } | {
  readonly ok: false;
  readonly error: Refusal;
};

/** The API's operations by their ids. */
export interface Operations {
  readonly keyed: ReadonlyMap<string, Endpoint<Serving>>;
  readonly keyless: ReadonlyMap<string, KeylessEndpoint<Serving>>;
}

/** Operations by id. */
export function operationsOf(
  keyed: readonly Endpoint<Serving>[],
  keyless: readonly KeylessEndpoint<Serving>[],
): Operations {
  const byId = <Each extends Definition>(endpoints: readonly Each[]) =>
    new Map(endpoints.map((endpoint) => [endpoint.doc.id, endpoint]));
  return { keyed: byId(keyed), keyless: byId(keyless) };
}

/** Asks operations on behalf of one request to the console. */
export class Asking {
  readonly serving: Serving;
  readonly #operations: Operations;
  readonly #request: Request;

  constructor(serving: Serving, operations: Operations, request: Request) {
    this.serving = serving;
    this.#operations = operations;
    this.#request = request;
  }

  /**
   * Calls an operation of an app, as with a secret key of its mode.
   *
   * @param members those of path, query and body in one object; undefined ones are left out
   * @param once makes a repeated write answer what the first one did; null for a read
   */
  async app<T>(
    { appId, mode }: AppMode,
    id: string,
    members: Members,
    once: string | null = null,
  ): Promise<Asked<T>> {
    const endpoint = this.#operations.keyed.get(id);
    if (endpoint === undefined) throw new Error(`No operation "${id}"`);
    const caller = this.serving.registry.operatorOf(appId, mode);
    if (caller === null) return refusedAs(new Refused("not_found", "No app has this appId"), this.#request);
    return await this.#answer(async () => {
      const sent = withoutUndefined(members);
      const call = { ...this.#checked(endpoint, sent), ...this.#onceOf(caller, id, sent, once), caller };
      return await runAnywhere(
        this.serving,
        { ...call, endUser: null, url: "", isCounted: true },
        this.#request,
      );
    });
  }

  /** Calls an operation of the admin API. */
  async admin<T>(id: string, members: Members = {}): Promise<Asked<T>> {
    const endpoint = this.#operations.keyless.get(id);
    if (endpoint === undefined) throw new Error(`No operation "${id}"`);
    return await this.#answer(async () => {
      const call = endpoint.input === null
        ? { endpoint, members: {}, input: null }
        : this.#checked(endpoint, withoutUndefined(members));
      const answer = await runKeylessAnywhere(this.serving, call, this.#request);
      if (answer instanceof Response) throw new Error(`The operation "${id}" answers no JSON`);
      return answer;
    });
  }

  /** What is wrong with the input of an operation before it is called; null for nothing. */
  misfitOf(id: string, members: Members): Refusal | null {
    const endpoint = this.#operations.keyed.get(id) ?? this.#operations.keyless.get(id);
    if (endpoint === undefined) throw new Error(`No operation "${id}"`);
    try {
      if (endpoint.input !== null) this.#checked(endpoint, withoutUndefined(members));
      return null;
    } catch (error) {
      return refusalOf(requestId(this.#request), error);
    }
  }

  #checked<Each extends Definition>(endpoint: Each, members: Members) {
    refuseForbiddenText(members);
    return { endpoint, members, input: checkInput(endpoint, members) };
  }

  #onceOf({ realm }: Caller, id: string, members: Members, once: string | null) {
    if (once === null) return { idempotent: null };
    const requestHash = hashOf(`console ${id}\n${JSON.stringify(members)}`);
    return { idempotent: { realm: realm.realm, key: `console-${once}`, requestHash } };
  }

  async #answer<T>(run: () => Promise<Parameters<typeof readAnswer>[0]>): Promise<Asked<T>> {
    try {
      return readAnswer(await run()) as Asked<T>;
    } catch (error) {
      return refusedAs(error, this.#request);
    }
  }
}

function refusedAs(error: unknown, request: Request): { readonly ok: false; readonly error: Refusal } {
  const answer: Answer = { ok: false, error: refusalOf(requestId(request), error) };
  return answer;
}

function withoutUndefined(members: Members): Members {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
