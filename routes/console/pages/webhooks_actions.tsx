// What is done to an app's webhooks and their messages.

import { type Act, actAt, type Call } from "../parts/action.tsx";
import type { AppMode } from "../parts/ask.ts";
import { type Field, textIn, type Values } from "../parts/form.tsx";
import { NewSecret } from "../parts/new_secret.tsx";
import { appPath } from "../parts/page.tsx";
import type { PageRequest, Shown } from "../parts/page_context.ts";
import { appOf, refusedPage } from "../parts/subject.tsx";

/** A webhook as the admin API lists it. */
export interface ShownWebhook {
  readonly webhookId: string;
  readonly url: string;
  readonly mode: "live" | "test";
  readonly events: readonly string[];
  readonly description: string | null;
  readonly disabled: boolean;
  readonly createdAt: string;
  readonly lastSuccessAt: string | null;
  readonly failingSince: string | null;
  readonly pending: number;
}

/** A message as the admin API lists it. */
export interface ShownMessage {
  readonly messageId: string;
  readonly type: string;
  readonly status: "pending" | "delivered" | "failed";
  readonly attempts: number;
  readonly nextAttemptAt: string | null;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  readonly createdAt: string;
  readonly data: unknown;
}

interface OfApp {
  readonly app: AppMode & { readonly name: string };
}

interface WebhookSubject extends OfApp {
  readonly webhook: ShownWebhook;
}

/** The path of an app's webhooks. */
export function webhooksPath(app: AppMode): string {
  return `${appPath(app)}/webhooks`;
}

/** The path of a webhook. */
export function webhookPath(app: AppMode, webhookId: string): string {
  return `${webhooksPath(app)}/${encodeURIComponent(webhookId)}`;
}

/** Reads the webhook that the path names. */
export async function aboutWebhook(request: PageRequest): Promise<WebhookSubject | Shown> {
  const app = appOf(request);
  const list = await request.ask.admin<ShownWebhook[]>("listWebhooks", { appId: app.appId });
  if (!list.ok) return refusedPage(list.error);
  const { webhookId } = request.params;
  const webhook = list.data.find((each) => each.webhookId === webhookId && each.mode === app.mode);
  if (webhook !== undefined) return { app, webhook };
  return { ...refusedPage({ code: "not_found", message: "The app has no such webhook." }), status: 404 };
}

function placeOfWebhook(_: PageRequest, { app, webhook }: WebhookSubject) {
  const back = webhookPath(app, webhook.webhookId);
  return {
    crumbs: [
      { title: app.name, href: appPath(app) },
      { title: "Webhooks", href: webhooksPath(app) },
      { title: webhook.url, href: back },
    ],
    back,
  };
}

/** A call about one webhook. */
function callOf(id: string, { app, webhook }: WebhookSubject, members: Call["members"] = {}): Call {
  return { id, members: { appId: app.appId, webhookId: webhook.webhookId, ...members }, isAdmin: true };
}

function fieldsOf(webhook: ShownWebhook | null): Field[] {
  return [
    {
      name: "url",
      label: "Address",
      kind: "text",
      value: webhook?.url ?? "https://",
      hint: "An https address that your network serves to everybody.",
      isRequired: true,
    },
    {
      name: "events",
      label: "What it is told",
      kind: "text",
      value: webhook?.events.join(" ") ?? "*",
      hint: "Types of messages with spaces between them, prefixes such as credits.*, or * for all.",
      isRequired: true,
    },
    { name: "description", label: "Description", kind: "text", value: webhook?.description ?? "" },
  ];
}

function membersOf(values: Values) {
  return {
    url: values["url"],
    events: (values["events"] ?? "").split(/[\s,]+/).filter((pattern) => pattern !== ""),
    description: textIn(values["description"] ?? "") ?? null,
  };
}

const make: Act<OfApp> = {
  path: "/console/apps/:appId/:mode/webhooks/new",
  title: "Make a webhook",
  about: (request) => ({ app: appOf(request) }),
  place: (_, { app }) => ({
    crumbs: [{ title: app.name, href: appPath(app) }, { title: "Webhooks", href: webhooksPath(app) }],
    back: webhooksPath(app),
  }),
  fields: () => fieldsOf(null),
  call: ({ app }, values) => ({
    id: "createWebhook",
    members: { appId: app.appId, mode: app.mode, ...membersOf(values) },
    isAdmin: true,
  }),
  preview: (_, { app }, values) => ({
    sentences: [
      `From now on ${values["url"]} is told ${
        told(membersOf(values).events)
      } of ${app.name} in ${app.mode} mode.`,
      "The secret that signs its messages shows once, on the page after this one.",
    ],
    changes: [],
    verb: "Make it",
  }),
  done: ({ app }, _, answer) => {
    const { secret, webhookId } = answer as { readonly secret: string; readonly webhookId: string };
    return secretPage(app, secret, webhookPath(app, webhookId));
  },
};

function told(events: readonly string[]): string {
  return events.includes("*") ? "everything" : events.join(", ");
}

function secretPage(app: AppMode & { readonly name: string }, secret: string, back: string): Shown {
  return {
    title: "The webhook's secret",
    crumbs: [{ title: app.name, href: appPath(app) }, { title: "Webhooks", href: webhooksPath(app) }],
    content: (
      <NewSecret
        title="The webhook's secret"
        secret={secret}
        text="Your server checks the signature of each message with it. Whoever loses it rotates it."
        back={back}
      />
    ),
  };
}

const change: Act<WebhookSubject> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/change",
  title: "Change a webhook",
  about: aboutWebhook,
  place: placeOfWebhook,
  fields: ({ webhook }) => fieldsOf(webhook),
  call: (subject, values) => callOf("changeWebhook", subject, membersOf(values)),
  preview: (_, { webhook }, values) => {
    const { url, events, description } = membersOf(values);
    const changes = [
      { what: "Address", before: webhook.url, after: url ?? "" },
      { what: "What it is told", before: webhook.events.join(" "), after: events.join(" ") },
      { what: "Description", before: webhook.description ?? "none", after: description ?? "none" },
    ].filter(({ before, after }) => before !== after);
    return {
      sentences: [
        changes.length === 0
          ? "Nothing would change."
          : "What waits and what happens from now on goes by the new values.",
      ],
      changes,
      verb: "Change it",
    };
  },
  done: () => "The webhook is changed.",
};

/** Disabling and enabling are one act each, so that an address says which. */
function switching(disabled: boolean): Act<WebhookSubject> {
  const verb = disabled ? "Disable" : "Enable";
  return {
    path: `/console/apps/:appId/:mode/webhooks/:webhookId/${verb.toLowerCase()}`,
    title: `${verb} a webhook`,
    about: async (request) => {
      const subject = await aboutWebhook(request);
      if (!("webhook" in subject) || subject.webhook.disabled !== disabled) return subject;
      return refusedPage(
        { code: "not_found", message: `It is ${disabled ? "disabled" : "enabled"} already.` },
        "Nothing to do",
      );
    },
    place: placeOfWebhook,
    fields: () => [],
    call: (subject) => callOf("changeWebhook", subject, { disabled }),
    preview: (_, { webhook }) => ({
      sentences: disabled
        ? ["Nothing is recorded for it while it is disabled. What waits already goes out when it is enabled."]
        : [
          "It is told again what happens from now on.",
          webhook.pending === 0 ? "Nothing waits." : `What waits goes out: ${webhook.pending} messages.`,
        ],
      changes: [{
        what: webhook.url,
        before: disabled ? "enabled" : "disabled",
        after: disabled ? "disabled" : "enabled",
      }],
      // More messages may wait by the time of the answer.
      ground: null,
      verb,
    }),
    done: () => `The webhook is ${disabled ? "disabled" : "enabled"}.`,
  };
}

const rotate: Act<WebhookSubject> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/rotate",
  title: "Give it a new secret",
  about: aboutWebhook,
  place: placeOfWebhook,
  fields: () => [],
  call: (subject) => callOf("rotateWebhookSecret", subject),
  preview: (_, { webhook }) => ({
    sentences: [
      `${webhook.url} gets a new secret, which shows once, on the page after this one.`,
      "For 24 hours every message has a signature of the old one too.",
    ],
    changes: [],
    verb: "Make a new secret",
  }),
  done: ({ app, webhook }, _, answer) =>
    secretPage(app, (answer as { secret: string }).secret, webhookPath(app, webhook.webhookId)),
};

const ping: Act<WebhookSubject> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/ping",
  title: "Ping a webhook",
  about: aboutWebhook,
  place: placeOfWebhook,
  fields: () => [],
  call: (subject) => callOf("pingWebhook", subject),
  preview: (_, { webhook }) => ({
    sentences: [
      `${webhook.url} gets a message of the type "ping" at once. It says nothing, and shows in the list below.`,
    ],
    changes: [],
    verb: "Ping it",
  }),
  done: () => "The ping is on its way. Load the page again to see what became of it.",
};

const remove: Act<WebhookSubject> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/delete",
  title: "Remove a webhook",
  about: aboutWebhook,
  place: (request, subject) => {
    const place = placeOfWebhook(request, subject);
    return request.form.get("step") === "confirm" ? { ...place, back: webhooksPath(subject.app) } : place;
  },
  fields: () => [],
  call: (subject) => callOf("deleteWebhook", subject),
  preview: (_, { webhook }) => ({
    sentences: [`${webhook.url} is told nothing any more.`],
    changes: [{ what: webhook.url, before: "told", after: "removed" }],
    danger: {
      consequence: "Messages that wait are not sent, and what became of earlier ones is not listed any more.",
      typed: webhook.webhookId,
    },
    verb: "Remove",
  }),
  done: ({ webhook }) => `The webhook ${webhook.url} is removed.`,
};

interface MessageSubject extends WebhookSubject {
  readonly messageId: string;
}

const redeliver: Act<MessageSubject> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/messages/:messageId/redeliver",
  title: "Send a message again",
  about: async (request) => {
    const subject = await aboutWebhook(request);
    return "webhook" in subject ? { ...subject, messageId: request.params["messageId"] ?? "" } : subject;
  },
  place: placeOfWebhook,
  fields: () => [],
  call: (subject) => callOf("redeliverMessage", subject, { messageId: subject.messageId }),
  preview: (_, { webhook, messageId }) => ({
    sentences: [
      `Message ${messageId} goes to ${webhook.url} at once, whatever became of it before.`,
      "Its webhook-id is the same, so that a receiver that has it already can tell. It waits for no earlier message.",
    ],
    changes: [],
    verb: "Send it again",
  }),
  done: (_, __, answer) => {
    const { status, lastStatus, lastError } = answer as ShownMessage;
    if (status === "delivered") return "The message was delivered.";
    return `It did not arrive: ${lastError ?? `the answer was ${lastStatus}`}.`;
  },
};

/** The acts on webhooks. */
export const WEBHOOK_ACTS = [
  actAt(make),
  actAt(change),
  actAt(switching(true)),
  actAt(switching(false)),
  actAt(rotate),
  actAt(ping),
  actAt(remove),
  actAt(redeliver),
];
