// Actions of operators on users and apps. Each has three steps: a form, a preview of the effect, and the confirmed action.
// A preview carries a hash of what it says and of what it was made from. If that has changed before the operator confirms,
// the new preview is shown and nothing is done. The hash is compared just before the call, which locks nothing for that
// long and decides by the state that it meets.

import type { Child } from "hono/jsx";
import { hashOf } from "../../../src/process/secrets/hash.ts";
import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { STATUS } from "../../http/errors.ts";
import type { AnswerOf, InputOf, KeyedDefinition, KeylessDefinition } from "../../contract/definition.ts";
import type { ApiAnswer } from "./ask.ts";
import { appOf, type UserSubject } from "./subject.tsx";
import { ActionForm, ActionPreview, type Preview, TICKED } from "./action_pages.tsx";
import { type Fault, faultsOf, type Field, type FormInput, type Values, valuesOf } from "./form.tsx";
import type { Crumb } from "./page.tsx";
import type { Session } from "./session.ts";
import {
  type ActionRoute,
  mayMake,
  type PageContent,
  type PageRequest,
  type PageResult,
  type PageRoute,
} from "./page_context.ts";

/** An action of operators by a call of the API. `Subject` is what it is about, such as a user with the catalog. */
export interface Action<Subject, Call extends ApiCall> {
  /** The path of the form; its steps are posted to the same path. */
  readonly path: string;
  readonly title: string;
  /** Reads the subject; throws a `PageError` where there is nothing to do. */
  readonly load: (request: PageRequest) => Promise<Subject> | Subject;
  readonly location: (subject: Subject, request: PageRequest) => {
    readonly crumbs: readonly Crumb[];
    /** The path of the page that offers the action, and that follows it. */
    readonly back: string;
  };
  /** The fields of the form; the query fills fields of the same names. Left out, the preview is the first step. */
  readonly fields?: (subject: Subject) => readonly Field[];
  /** The sentence above the form. */
  readonly intro?: (subject: Subject) => string;
  readonly call: Call;
  /** The input of the call. It is checked before the preview. */
  readonly input: (subject: Subject, values: Values) => FormInput<InputOf<Call>>;
  readonly preview: (
    request: PageRequest,
    subject: Subject,
    values: Values,
  ) => Promise<Preview | readonly Fault[]> | Preview | readonly Fault[];
  /** The result: a sentence for the page that follows, or a page of its own, such as one with a new secret. */
  readonly done: (subject: Subject, values: Values, answer: AnswerOf<Call>) => string | PageContent;
}

type ApiCall = KeyedDefinition | KeylessDefinition;

/** The step that a form asks for. */
type Step = "form" | "preview" | "confirm";

/** The routes of an action: its page, and the steps that are posted to it. */
export function actionRoutes<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
): { readonly page: PageRoute; readonly action: ActionRoute } {
  return {
    page: { path: action.path, show: (request) => showAction(action, request) },
    action: { path: action.path, call: action.call, run: (request) => runAction(action, request) },
  };
}

/** What an operator without the role for an action reads. */
export function notAllowed({ operator: { role } }: Session): string {
  return role === "agent"
    ? "Your role may grant credits and release holds, and nothing else."
    : "You have read-only access.";
}

async function showAction<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest,
): Promise<PageResult> {
  if (!mayMake(request.session, action.call)) {
    const text = notAllowed(request.session);
    return { title: "Not allowed", content: <p class="note warn">{text}</p>, status: 403 };
  }
  const subject = await action.load(request);
  const attempt = new Attempt(action, request, subject, (fields) => valuesOf(fields, request.query, true));
  return attempt.hasInput ? attempt.showForm() : await attempt.showPreview();
}

async function runAction<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest & { readonly once: string },
): Promise<PageResult> {
  const subject = await action.load(request);
  const attempt = new Attempt(action, request, subject, (fields) => valuesOf(fields, request.form));
  const step = request.form.get("step") as Step | null;
  if (step === "confirm") return await attempt.confirm(request.once);
  return step === "form" ? attempt.showForm() : await attempt.showPreview();
}

const CHANGED = "Something changed since this preview, so nothing was done. This is the effect now.";

/** How a preview differs from the first one of its form. */
interface Repeated {
  readonly preview?: Preview;
  readonly note?: string;
  readonly typedFault?: string;
  readonly once?: string;
  readonly status?: number;
}

/** One request for an action on a subject, with the values of its form. */
class Attempt<Subject, Call extends ApiCall> {
  readonly #action: Action<Subject, Call>;
  readonly #request: PageRequest;
  readonly #subject: Subject;
  readonly #fields: readonly Field[];
  readonly #values: Values;

  constructor(
    action: Action<Subject, Call>,
    request: PageRequest,
    subject: Subject,
    read: (fields: readonly Field[]) => Values,
  ) {
    this.#action = action;
    this.#request = request;
    this.#subject = subject;
    this.#fields = action.fields?.(subject) ?? [];
    this.#values = read(this.#fields);
  }

  /** Whether the form has fields to fill in. */
  get hasInput(): boolean {
    return this.#fields.some(({ kind }) => kind !== "hidden" && kind !== "fixed");
  }

  /** @param once the key of the form: under the same one the action happens once */
  async confirm(once: string): Promise<PageResult> {
    const { form } = this.#request;
    const preview = await this.#preview();
    if (!("verb" in preview)) return this.showForm(preview);
    if (form.get("fingerprint") !== fingerprintOf(preview, this.#values)) {
      return this.showPreview({ preview, note: CHANGED });
    }
    const { danger } = preview;
    if (danger !== undefined && form.get("typed") !== (danger.typed ?? TICKED)) {
      const typedFault = danger.typed === null ? "Confirm to continue" : `Type "${danger.typed}"`;
      return this.showPreview({ preview, typedFault });
    }
    const answer = await this.#call(preview, once);
    if (!answer.ok) return this.#failed(answer.error, once);
    const result = this.#action.done(this.#subject, this.#values, answer.data as AnswerOf<Call>);
    if (typeof result !== "string") return { ...result, isDone: true };
    return { to: this.#location.back, note: result, isDone: true };
  }

  #call(preview: Preview, once: string): Promise<ApiAnswer<unknown>> {
    const { ask } = this.#request;
    const call: ApiCall = this.#action.call;
    // The schema of the call checks it.
    const input = this.#action.input(this.#subject, this.#values) as never;
    if (isKeyless(call)) return ask.admin(call, input);
    return ask.app(appOf(this.#request), call, input, once, {
      userId: userIdOf(this.#subject),
      before: sideOf(preview, "before"),
      after: sideOf(preview, "after"),
    });
  }

  #failed(refusal: Refusal, once: string): Promise<PageResult> | PageResult {
    // Whether it was done is unknown: under the same key it happens once.
    if (STATUS[refusal.code] >= 500 && refusal.code !== "not_implemented") {
      const note = `${refusal.message}. Confirm again: even if it was already done, it happens only once.`;
      return this.showPreview({ note, once, status: STATUS[refusal.code] });
    }
    return this.showForm(faultsOf(refusal, this.#fields), STATUS[refusal.code]);
  }

  async #preview(): Promise<Preview | readonly Fault[]> {
    const { call, input, preview } = this.#action;
    const fault = this.#request.ask.inputFault(call, input(this.#subject, this.#values));
    if (fault !== null) return faultsOf(fault, this.#fields);
    return await preview(this.#request, this.#subject, this.#values);
  }

  get #location() {
    return this.#action.location(this.#subject, this.#request);
  }

  showForm(faults: readonly Fault[] = [], status = faults.length > 0 ? 400 : 200): PageContent {
    return this.#page(
      status,
      <ActionForm
        request={this.#request}
        title={this.#action.title}
        intro={this.#action.intro?.(this.#subject)}
        fields={this.#fields}
        values={this.#values}
        faults={faults}
        back={this.#location.back}
      />,
    );
  }

  async showPreview(
    { note, typedFault, once, status, ...repeated }: Repeated = {},
  ): Promise<PageContent> {
    const preview = repeated.preview ?? await this.#preview();
    if (!("verb" in preview)) return this.showForm(preview);
    return this.#page(
      status ?? (note !== undefined ? 409 : typedFault !== undefined ? 400 : 200),
      <ActionPreview
        request={this.#request}
        title={this.#action.title}
        preview={preview}
        values={{ ...this.#values, fingerprint: fingerprintOf(preview, this.#values) }}
        hasForm={this.hasInput}
        back={this.#location.back}
        note={note}
        typedFault={typedFault}
        once={once}
      />,
    );
  }

  #page(status: number, content: Child): PageContent {
    const { title } = this.#action;
    return { title, crumbs: [...this.#location.crumbs, { title, href: null }], status, content };
  }
}

/** The user that an action changes, for the audit log; null for an action on something else. */
function userIdOf(subject: unknown): string | null {
  return (subject as Partial<UserSubject>).user?.userId ?? null;
}

function isKeyless(call: ApiCall): call is KeylessDefinition {
  return call.access === "admin" || call.access === "open";
}

/** The hash of everything that a preview says and was made from. */
function fingerprintOf({ sentences, changes, basis, danger }: Preview, values: Values): string {
  return hashOf(JSON.stringify([sentences, changes, basis ?? null, danger ?? null, Object.entries(values)]));
}

/** The changes of a preview for the audit log, in the words that the operator read. */
function sideOf({ changes }: Preview, side: "before" | "after"): Record<string, string> {
  return Object.fromEntries(changes.map((change) => [change.what, change[side]]));
}
