// A visitor of the console: signs in, keeps cookies as a browser does, reads pages and sends their forms.

import assert from "node:assert/strict";
import type { Hono } from "hono";
import { makeApp } from "../../routes/app.ts";
import type { ConsoleOptions } from "../../routes/console/console.tsx";
import { ADMIN_TOKEN, type TestService } from "../support/test_service.ts";

export const SUPPORT_TOKEN = "test-support-token-0123456789";
export const AGENT_TOKEN = "test-agent-token-0123456789";
/** Units that the agent of the tests may grant in a day. */
const AGENT_GRANTS = 20;

/** The operators of the tests. */
export const OPERATORS: ConsoleOptions["operators"] = [
  { name: "admin", role: "admin", token: ADMIN_TOKEN },
  { name: "support", role: "support", token: SUPPORT_TOKEN },
  { name: "mia", role: "agent", token: AGENT_TOKEN },
];

/** The surface of a service with its console. */
export function consoleOf(service: TestService, options: Partial<ConsoleOptions> = {}): Hono {
  return makeApp(service.service, ADMIN_TOKEN, {
    operators: OPERATORS,
    isSecure: false,
    supportSeesPrompts: false,
    agentGrants: AGENT_GRANTS,
    ...options,
  });
}

/** A response. */
export interface Visit {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** The text without markup. */
  readonly text: string;
  /** The path after redirects. */
  readonly path: string;
}

/** The path and fields that a form sends. */
interface FoundForm {
  readonly action: string;
  readonly fields: Readonly<Record<string, string>>;
}

/** A visitor with a browser. */
export class Visitor {
  /** The process that answers. */
  http: Hono;
  readonly #cookies = new Map<string, string>();

  constructor(http: Hono) {
    this.http = http;
  }

  /** Returns a signed-in visitor. */
  static async signedIn(http: Hono, token = ADMIN_TOKEN): Promise<Visitor> {
    const visitor = new Visitor(http);
    const { status } = await visitor.send("/console/sign-in", { token, to: "/console/apps" }, false);
    assert.equal(status, 303);
    return visitor;
  }

  /** Opens a page, by default through redirects. */
  get(path: string, headers: Record<string, string> = {}, follows = true): Promise<Visit> {
    return this.#fetch(path, { method: "GET", headers }, follows);
  }

  /** Sends fields as a form does. */
  send(path: string, fields: Readonly<Record<string, string>>, follows = true): Promise<Visit> {
    const body = new URLSearchParams(fields).toString();
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "content-length": String(new TextEncoder().encode(body).byteLength),
    };
    return this.#fetch(path, { method: "POST", headers, body }, follows);
  }

  /** Sends the form of a page that has this button, with some fields filled in. */
  press(
    { html, path }: Visit,
    button: string,
    filled: Readonly<Record<string, string>> = {},
    follows = true,
  ): Promise<Visit> {
    const { action, fields } = formOf(html, button);
    return this.send(action === "" ? path : action, { ...fields, ...filled }, follows);
  }

  async #fetch(path: string, init: RequestInit, follows: boolean): Promise<Visit> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { ...init.headers as Record<string, string>, ...(cookie === "" ? {} : { cookie }) };
    const response = await this.http.fetch(new Request(`http://service.test${path}`, { ...init, headers }));
    for (const set of response.headers.getSetCookie()) this.#keep(set);
    const to = response.headers.get("location");
    if (follows && response.status === 303 && to !== null) {
      return await this.#fetch(to, { method: "GET" }, true);
    }
    const html = await response.text();
    return { status: response.status, headers: response.headers, html, text: wordsOf(html), path };
  }

  #keep(set: string): void {
    const [pair = "", ...attributes] = set.split("; ");
    const [name = "", value = ""] = pair.split("=", 2);
    if (attributes.includes("Max-Age=0")) this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}

/** The form with a button of this text. */
export function formOf(html: string, button: string): FoundForm {
  for (const [, head = "", inside = ""] of html.matchAll(/<form([^>]*)>([\s\S]*?)<\/form>/g)) {
    const pressed = [...inside.matchAll(/<button([^>]*)>([\s\S]*?)<\/button>/g)]
      .find(([, , text = ""]) => wordsOf(text) === button);
    if (pressed === undefined) continue;
    const fields: Record<string, string> = {};
    for (const [, input = ""] of inside.matchAll(/<input([^>]*)\/>/g)) {
      const isUnchecked = /type="(?:checkbox|radio)"/.test(input) && !/\schecked/.test(input);
      const name = attribute(input, "name");
      if (name !== null && !isUnchecked) fields[name] = attribute(input, "value") ?? "";
    }
    for (const [, area = "", text = ""] of inside.matchAll(/<textarea([^>]*)>([\s\S]*?)<\/textarea>/g)) {
      const name = attribute(area, "name");
      if (name !== null) fields[name] = unescaped(text);
    }
    for (const [, select = "", options = ""] of inside.matchAll(/<select([^>]*)>([\s\S]*?)<\/select>/g)) {
      const name = attribute(select, "name");
      const all = [...options.matchAll(/<option([^>]*)>/g)].map(([, option = ""]) => option);
      const chosen = all.find((option) => /\sselected/.test(option)) ?? all[0];
      if (name !== null && chosen !== undefined) fields[name] = attribute(chosen, "value") ?? "";
    }
    const own = pressed[1] ?? "";
    const name = attribute(own, "name");
    if (name !== null) fields[name] = attribute(own, "value") ?? "";
    return { action: attribute(head, "action") ?? "", fields };
  }
  throw new Error(`No form has a button "${button}"`);
}

/** The path at which the live part of a page is asked for again; "" for a page without one. */
export function pollOf(html: string): string {
  const [, path = ""] = /hx-get="([^"]*)" hx-trigger="every /.exec(html) ?? [];
  return unescaped(path);
}

/** Whether a page has a button of this text. */
export function hasButton(html: string, button: string): boolean {
  return [...html.matchAll(/<button[^>]*>([\s\S]*?)<\/button>/g)].some(([, text = ""]) =>
    wordsOf(text) === button
  );
}

function attribute(tag: string, name: string): string | null {
  const found = new RegExp(`\\s${name}="([^"]*)"`).exec(tag);
  return found === null ? null : unescaped(found[1] ?? "");
}

function wordsOf(html: string): string {
  return unescaped(html.replaceAll(/<(script|style)[\s\S]*?<\/\1>/g, " ").replaceAll(/<[^>]*>/g, " "))
    .replaceAll(/\s+/g, " ").trim();
}

function unescaped(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll(
    "&#39;",
    "'",
  )
    .replaceAll("&amp;", "&");
}
