// Handles every request to the console: assets and sign-in; everything else needs a session, and a form that changes
// something also needs the role for it, the session's CSRF token and a key of its own.

import { type Context, Hono, type HonoRequest } from "hono";
import type { Child } from "hono/jsx";
import { isSpentId, spendId } from "../../src/audit/spent.ts";
import { type AuditedAction, recordAudited, type Values } from "../../src/audit/audit.ts";
import { Unavailable } from "../../actors/port.ts";
import type { OperatorToken } from "../../src/process/operators.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";
import { log, messageOf } from "../../src/process/log.ts";
import type { Stores } from "../../src/cluster/stores.ts";
import type { Endpoint, KeylessEndpoint } from "../http/endpoint_types.ts";
import { formRules } from "../http/body.ts";
import { Refused, STATUS } from "../http/errors.ts";
import { addressOf, type Guess, type Guesses } from "../http/guesses.ts";
import { requestId } from "../http/respond.ts";
import { ApiCaller, endpointsOf, type World } from "./parts/ask.ts";
import { type Assets, readAssets } from "./parts/assets.ts";
import { Operators } from "./parts/operators.ts";
import { noteCookie, noteOf, readNoteCookie } from "./parts/note.ts";
import { type Frame, idOf, Page } from "./parts/page.tsx";
import { ConfirmedForms } from "./confirmed_forms.ts";
import { download, html, isReadable, redirect, secured } from "./responses.ts";
import { isFromElsewhere, readForm } from "./sent_forms.ts";
import { notAllowed } from "./parts/action.tsx";
import { ACTIONS, PAGES } from "./routes.ts";
import { Message } from "./parts/message.tsx";
import { resultOf } from "./parts/subject.tsx";
import { SignIn } from "./pages/sign_in.tsx";
import {
  type ActionRoute,
  mayRun,
  type PageRequest,
  type PageResult,
  type PageRoute,
} from "./parts/page_context.ts";
import { cookieOf, expiredCookie, isOwnForm, newSession, type Session, sessionOf } from "./parts/session.ts";
import { shownName } from "./parts/format.tsx";

/** The settings of the console in a process. */
export interface ConsoleOptions {
  readonly operators: readonly OperatorToken[];
  /** Whether browsers reach it only by https. */
  readonly isSecure: boolean;
  readonly supportSeesPrompts: boolean;
  /** Units of credits that an agent may grant in a UTC day. */
  readonly agentGrants: number;
}

const HOME = "/console/apps";
const SIGN_IN = "/console/sign-in";
const SIGN_OUT = "/console/sign-out";
const RETRY_AFTER_S = "2";
/** The answer to a poll for a part of a page that has not changed. */
const UNCHANGED = 204;
const FROM_ELSEWHERE = "This form was sent from another site. Sign in here.";
/** Members of paths that have an id of a user. */
const USER_IDS: ReadonlySet<string> = new Set(["userId", "alias"]);
/** Apps in the menu that switches between them. */
const APPS_SHOWN = 20;
const ONCE = /^[A-Za-z0-9]{16,64}$/;

/** The routes of the console. */
export function consoleRoutes(
  service: Stores,
  options: ConsoleOptions,
  guesses: Guesses,
  keyed: readonly Endpoint<World>[],
  keyless: readonly KeylessEndpoint<World>[],
): Hono {
  const app = new Hono();
  const console = new Console(service, options, guesses, endpointsOf(keyed, keyless));
  const guarded = (answer: (context: Context) => Promise<Response>) => (context: Context) =>
    answer(context).catch((error) => console.fail(context, error));
  app.get("/console/assets/*", (context) => console.asset(context));
  app.get("/console", () => redirect(HOME));
  app.get(SIGN_IN, guarded((context) => console.showSignIn(context)));
  app.post(SIGN_IN, guarded((context) => console.signIn(context)));
  app.post(SIGN_OUT, guarded((context) => console.signOut(context)));
  for (const page of PAGES) app.get(page.path, guarded((context) => console.show(context, page)));
  for (const action of ACTIONS) app.post(action.path, guarded((context) => console.run(context, action)));
  app.all("/console/*", guarded((context) => console.notFound(context)));
  return app;
}

/** The session of a request, or the response that ends it. */
type Admitted = { readonly session: Session; readonly serving: World } | Response;

class Console {
  readonly #service: Stores;
  readonly #operators: Operators;
  readonly #isSecure: boolean;
  readonly #supportSeesPrompts: boolean;
  readonly #agentGrants: number;
  readonly #endpoints: ReturnType<typeof endpointsOf>;
  readonly #guesses: Guesses;
  readonly #confirmed = new ConfirmedForms();
  #assets: Promise<Assets> | null = null;

  constructor(
    service: Stores,
    options: ConsoleOptions,
    guesses: Guesses,
    endpoints: ReturnType<typeof endpointsOf>,
  ) {
    this.#service = service;
    this.#guesses = guesses;
    this.#operators = new Operators(options.operators);
    this.#isSecure = options.isSecure;
    this.#supportSeesPrompts = options.supportSeesPrompts;
    this.#agentGrants = options.agentGrants;
    this.#endpoints = endpoints;
  }

  async asset({ req }: Context): Promise<Response> {
    return (await this.#files()).answer(req.path) ?? new Response("Not found", { status: 404 });
  }

  async showSignIn(context: Context): Promise<Response> {
    if (this.#service.serving === null) return await this.#unavailable(context);
    return await this.#bare(
      context,
      "Sign in",
      <SignIn returnTo={pagePathOf(context.req.query("to"))} fault={null} />,
    );
  }

  async signIn(context: Context): Promise<Response> {
    const { serving } = this.#service;
    if (serving === null) return await this.#unavailable(context);
    if (isFromElsewhere(context.req.raw)) {
      return await this.#refuseSignIn(context, HOME, FROM_ELSEWHERE, 403);
    }
    const now = serving.clock.now();
    const address = addressOf(context.env);
    const guess = this.#guesses.begin(address, now);
    const form = await readForm(context.req.raw, formRules(false, BODY_LIMITS.signInBytesMax));
    const returnTo = pagePathOf(form?.get("to") ?? undefined);
    const operator = await this.#operators.byToken(form?.get("token") ?? "");
    if (operator === null) {
      await this.#guesses.record(serving, guess, "console");
      return await this.#refuseGuess(context, returnTo, guess);
    }
    this.#guesses.forgive(guess);
    await record(serving, operator.name, "signIn", { address });
    const response = redirect(returnTo);
    response.headers.set("set-cookie", cookieOf(newSession(operator, now), this.#isSecure));
    return response;
  }

  async #refuseGuess(context: Context, returnTo: string, { waitS }: Guess): Promise<Response> {
    if (waitS === 0) return await this.#refuseSignIn(context, returnTo, "Invalid token.", 401);
    const text = `Too many invalid tokens. Try again in ${waitS} seconds.`;
    const response = await this.#refuseSignIn(context, returnTo, text, 429);
    response.headers.set("retry-after", String(waitS));
    return response;
  }

  #refuseSignIn(context: Context, returnTo: string, fault: string, status: number): Promise<Response> {
    return this.#bare(context, "Sign in", <SignIn returnTo={returnTo} fault={fault} />, status);
  }

  async signOut(context: Context): Promise<Response> {
    const admitted = await this.#admit(context);
    if (admitted instanceof Response) return admitted;
    const { session, serving } = admitted;
    const form = await readForm(context.req.raw, formRules(true, BODY_LIMITS.signInBytesMax));
    if (!isOwnForm(session, form?.get("csrf") ?? null)) return await this.#refuseForm(context, session);
    if (await this.#signOutEverywhere(session)) {
      await record(serving, session.operator.name, "signOut");
    }
    const response = redirect(SIGN_IN);
    response.headers.set("set-cookie", expiredCookie(this.#isSecure));
    return response;
  }

  /** Ends a session in every database, so that any of them refuses it while another is away; false if it had ended. */
  async #signOutEverywhere({ id, until }: Session): Promise<boolean> {
    const spent = await Promise.all(this.#service.terms.map((serving) => spendId(serving, id, until)));
    return spent.includes(true);
  }

  async show(context: Context, page: PageRoute): Promise<Response> {
    const admitted = await this.#admit(context);
    if (admitted instanceof Response) return admitted;
    const request = this.#requestOf(context, admitted, new URLSearchParams(), null);
    if (request === null) return await this.#unknownApp(context, admitted.session);
    return await this.#respond(context, request, () => page.show(request));
  }

  async run(context: Context, action: ActionRoute): Promise<Response> {
    const admitted = await this.#admit(context);
    if (admitted instanceof Response) return admitted;
    const { session } = admitted;
    const form = await readForm(context.req.raw, formRules(true, BODY_LIMITS.formBytesMax));
    const once = form?.get("once") ?? "";
    if (form === null || !isOwnForm(session, form.get("csrf")) || !ONCE.test(once)) {
      return await this.#refuseForm(context, session);
    }
    if (!mayRun(session, action)) {
      return await this.#message(context, session, "Not allowed", notAllowed(session), 403);
    }
    const request = this.#requestOf(context, admitted, form, once);
    if (request === null) return await this.#unknownApp(context, session);
    const run = () => action.run({ ...request, once });
    const isConfirmed = form.get("step") === "confirm";
    const key = `${session.id} ${once} ${request.path}`;
    return await this.#respond(context, request, isConfirmed ? () => this.#confirmed.once(key, run) : run);
  }

  async notFound(context: Context): Promise<Response> {
    const admitted = await this.#admit(context);
    if (admitted instanceof Response) return admitted;
    return await this.#message(
      context,
      admitted.session,
      "Page not found",
      "The console has no page at this address.",
      404,
    );
  }

  /** Returns the session of a request, or redirects to the sign-in page, which returns to the requested page. */
  async #admit(context: Context): Promise<Admitted> {
    const serving = this.#service.serving;
    if (serving === null) return await this.#unavailable(context);
    const session = await sessionOf(context.req.raw, this.#operators, serving.clock.now());
    if (session === null || await this.#hasEnded(session)) return signInFrom(context.req);
    return { session, serving };
  }

  async #hasEnded({ id }: Session): Promise<boolean> {
    const { terms } = this.#service;
    return (await Promise.all(terms.map((serving) => isSpentId(serving, id)))).includes(true);
  }

  #requestOf(
    context: Context,
    { session, serving: any }: Exclude<Admitted, Response>,
    form: URLSearchParams,
    once: string | null,
  ): PageRequest | null {
    const { req } = context;
    const params = Object.fromEntries(
      Object.entries(req.param() as Record<string, string>).map((
        [name, part],
      ) => [name, USER_IDS.has(name) ? idOf(part) : part]),
    );
    const { appId, mode } = params;
    const serving = appId === undefined ? any : this.#service.requireServingOf({ appId });
    const record = appId === undefined ? null : serving.registry.apps.get(appId)?.record;
    if (!isReadable(req.url)) return null;
    if (record === undefined || (record !== null && mode !== "live" && mode !== "test")) return null;
    return {
      session,
      params,
      query: new URL(req.url).searchParams,
      form,
      ask: new ApiCaller({ serving, source: this.#service }, this.#endpoints, req.raw, {
        session,
        seesPrompts: this.#seesPrompts(session),
        agentGrants: this.#agentGrants,
        userId: params["userId"] ?? null,
        once,
      }),
      app: record === null ? null : { ...shownApp(record), mode: mode as "live" | "test" },
      isPartial: req.header("hx-request") !== undefined,
      path: new URL(req.url).pathname,
    };
  }

  #seesPrompts({ operator: { role } }: Session): boolean {
    return role === "admin" || (role === "support" && this.#supportSeesPrompts);
  }

  async #respond(
    context: Context,
    request: PageRequest,
    make: () => Promise<PageResult> | PageResult,
  ): Promise<Response> {
    const { session, app, path } = request;
    const result = await resultOf(make);
    if ("to" in result) {
      const { to, note } = result;
      const response = request.isPartial
        ? secured(new Response(null, { headers: { "hx-redirect": to } }))
        : redirect(to);
      if (note !== undefined) {
        response.headers.set("set-cookie", noteCookie(session, to, note, this.#isSecure));
      }
      return response;
    }
    if ("text" in result) return download(result);
    const { title, crumbs = [], content, status = 200 } = result;
    if (status === UNCHANGED) return secured(new Response(null, { status }));
    // The fragment escapes content that is plain text.
    if (request.isPartial) return html(<>{content}</>, status);
    const note = noteOf(context.req.raw, session, path);
    const response = await this.#page(
      { session, app, title, crumbs, path, note },
      content,
      status,
    );
    if (note !== null) response.headers.set("set-cookie", readNoteCookie(this.#isSecure));
    return response;
  }

  async #page(frame: Omit<Frame, "assets">, content: Child, status: number): Promise<Response> {
    const assets = await this.#files();
    const apps = frame.app === null ? [] : this.#appsBeside(frame.app);
    return html(<Page frame={{ ...frame, apps, assets }}>{content}</Page>, status, "<!doctype html>");
  }

  async #bare(context: Context, title: string, content: Child, status = 200): Promise<Response> {
    return await this.#page({ session: null, app: null, title, path: context.req.path }, content, status);
  }

  async #message(
    context: Context,
    session: Session,
    title: string,
    text: string,
    status: number,
  ): Promise<Response> {
    const content = <Message title={title} text={text} />;
    const { path } = context.req;
    return await this.#page({ session, app: this.#appAt(path), title, path }, content, status);
  }

  /** The app and mode of a path; null for any other path. */
  #appAt(path: string): Frame["app"] {
    const [, id = "", mode] = /^\/console\/apps\/([^/]+)\/(live|test)(?:\/|$)/.exec(path) ?? [];
    const [app] = this.#service.terms.flatMap(({ registry }) => registry.apps.get(id) ?? []);
    const record = app?.record;
    return record === undefined ? null : { ...shownApp(record), mode: mode as "live" | "test" };
  }

  /** An app, and some others to switch to. */
  #appsBeside({ appId, name }: NonNullable<Frame["app"]>): NonNullable<Frame["apps"]> {
    const others = this.#service.terms.values().flatMap(({ registry }) => registry.apps.values())
      .filter(({ record }) => record.appId !== appId).take(APPS_SHOWN - 1);
    return [
      { appId, name },
      ...[...others].map(({ record }) => shownApp(record)),
    ];
  }

  #refuseForm(context: Context, session: Session): Promise<Response> {
    const text = "This form does not belong to your current session. Reload the page and send it again.";
    return this.#message(context, session, "Form expired", text, 403);
  }

  #unknownApp(context: Context, session: Session): Promise<Response> {
    return this.#message(
      context,
      session,
      "Page not found",
      "There is no app with this ID and mode, or the address is malformed.",
      404,
    );
  }

  /** The page for an unexpected error. */
  async fail(context: Context, error: unknown): Promise<Response> {
    if (error instanceof Unavailable || this.#service.serving === null) {
      return await this.#unavailable(context);
    }
    if (error instanceof Refused) {
      const { code, message } = error.refusal;
      const title = "Request refused";
      return await this.#bare(context, title, <Message title={title} text={message} />, STATUS[code]);
    }
    const id = requestId(context.req.raw);
    log("error", "A page of the console failed", {
      requestId: id,
      path: context.req.path,
      error: messageOf(error),
    });
    const title = "Something went wrong";
    const text = `Request ID: ${id}. The log of the service has the details.`;
    const admitted = await this.#admit(context).catch(() => null);
    if (admitted !== null && !(admitted instanceof Response)) {
      return await this.#message(context, admitted.session, title, text, 500);
    }
    return await this.#bare(context, title, <Message title={title} text={text} />, 500);
  }

  async #unavailable(context: Context): Promise<Response> {
    const title = "Temporarily unavailable";
    const text = "This process cannot reach its database. Reload the page in a few seconds.";
    const response = await this.#bare(context, title, <Message title={title} text={text} />, 503);
    response.headers.set("retry-after", RETRY_AFTER_S);
    return response;
  }

  #files(): Promise<Assets> {
    return this.#assets ??= readAssets();
  }
}

/** Records a sign-in or sign-out in the audit log. */
function record(serving: World, who: string, what: string, after: Values | null = null): Promise<void> {
  const action: AuditedAction = { who, via: "console", what, appId: null, mode: null, userId: null };
  return recordAudited(serving, action, after);
}

function shownApp({ appId, name }: { readonly appId: string; readonly name: string }) {
  return { appId, name: shownName(name, appId) };
}

/** Redirects to the sign-in page, which returns to the requested page, or to the form that was sent: it has the same path. */
function signInFrom({ raw, url }: HonoRequest): Response {
  const isPartial = raw.headers.has("hx-request");
  // For a part of a page, the whole page goes to the sign-in form and returns to itself.
  const from = isPartial ? raw.headers.get("hx-current-url") ?? "" : url;
  const { pathname, search } = URL.canParse(from) ? new URL(from) : { pathname: HOME, search: "" };
  const to = `${SIGN_IN}?to=${encodeURIComponent(pathname + search)}`;
  return isPartial ? secured(new Response(null, { headers: { "hx-redirect": to } })) : redirect(to);
}

/** Returns the path of a page of the console; for any other text the start page, so that no link leads to another site. */
function pagePathOf(path: string | undefined): string {
  if (path === undefined || !path.startsWith("/console") || /[\\\p{Cc}]|\/\//u.test(path)) return HOME;
  const { host, pathname, search } = new URL(path, "http://host");
  const isPage = host === "host" && /^\/console(\/|$)/.test(pathname) &&
    ![SIGN_IN, SIGN_OUT].includes(pathname);
  return isPage ? pathname + search : HOME;
}
