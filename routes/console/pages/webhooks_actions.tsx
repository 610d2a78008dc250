// Actions on webhook endpoints and their deliveries.

import { type Action, actionRoutes } from "../parts/action.tsx";
import type { AppMode } from "../parts/ask.ts";
import { type Field, textIn, type Values } from "../parts/form.tsx";
import { secretPage } from "../parts/new_secret.tsx";
import { appPath, crumbsOf } from "../parts/page.tsx";
import type { PageContent, PageRequest } from "../parts/page_context.ts";
import { appOf, dataOf, PageError } from "../parts/subject.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listWebhooks,
  pingWebhook,
  redeliverMessage,
  redeliverMessages,
  rotateWebhookSecret,
} from "../../contract/webhooks.ts";

/** A webhook endpoint as the admin API lists it. */
export type ShownWebhook = AnswerOf<typeof listWebhooks>[number];

interface OfApp {
  readonly app: AppMode & { readonly name: string };
}

interface WebhookSubject extends OfApp {
  readonly webhook: ShownWebhook;
}

/** The path of an app's webhook endpoints. */
export function webhooksPath(app: AppMode): string {
  return `${appPath(app)}/webhooks`;
}

/** The path of a webhook endpoint. */
export function webhookPath(app: AppMode, webhookId: string): string {
  return `${webhooksPath(app)}/${encodeURIComponent(webhookId)}`;
}

/** Reads the endpoint that the path names. */
export async function loadWebhook(request: PageRequest): Promise<WebhookSubject> {
  const app = appOf(request);
  const list = await request.ask.admin(listWebhooks, { appId: app.appId }).then(dataOf);
  const { webhookId } = request.params;
  const webhook = list.find((each) => each.webhookId === webhookId && each.mode === app.mode);
  if (webhook !== undefined) return { app, webhook };
  throw new PageError({ code: "not_found", message: "Webhook endpoint not found." });
}

function webhookLocation({ app, webhook }: WebhookSubject) {
  const back = webhookPath(app, webhook.webhookId);
  return {
    crumbs: crumbsOf(app, { title: "Webhooks", href: webhooksPath(app) }, { title: webhook.url, href: back }),
    back,
  };
}

function idsOf({ app, webhook }: WebhookSubject) {
  return { appId: app.appId, webhookId: webhook.webhookId };
}

function fieldsOf(webhook: ShownWebhook | null): Field[] {
  return [
    {
      name: "url",
      label: "URL",
      kind: "text",
      value: webhook?.url ?? "https://",
      hint: "A public https URL.",
      isRequired: true,
    },
    {
      name: "events",
      label: "Events",
      kind: "text",
      value: webhook?.events.join(" ") ?? "*",
      hint: "Event types separated by spaces, prefixes such as credits.*, or * for all.",
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

const create: Action<OfApp, typeof createWebhook> = {
  path: "/console/apps/:appId/:mode/webhooks/new",
  title: "Add endpoint",
  load: (request) => ({ app: appOf(request) }),
  location: ({ app }) => ({
    crumbs: crumbsOf(app, { title: "Webhooks", href: webhooksPath(app) }),
    back: webhooksPath(app),
  }),
  fields: () => fieldsOf(null),
  call: createWebhook,
  input: ({ app }, values) => ({ appId: app.appId, mode: app.mode, ...membersOf(values) }),
  preview: (_, { app }, values) => ({
    sentences: [
      `${values["url"]} will receive ${
        eventsText(membersOf(values).events)
      } of ${app.name} in ${app.mode} mode.`,
      "The next page shows the signing secret once. Copy it before you leave that page.",
    ],
    changes: [],
    verb: "Add endpoint",
  }),
  done: ({ app }, _, { secret, webhookId }) => signingSecretPage(app, secret, webhookPath(app, webhookId)),
};

function eventsText(events: readonly string[]): string {
  return events.includes("*") ? "all events" : `the events ${events.join(", ")}`;
}

function signingSecretPage(
  app: AppMode & { readonly name: string },
  secret: string,
  back: string,
): PageContent {
  return secretPage({
    title: "Signing secret",
    crumbs: crumbsOf(app, { title: "Webhooks", href: webhooksPath(app) }),
    secret,
    text: "Your server verifies the signature of each message with it. If you lose it, rotate it.",
    back,
  });
}

const change: Action<WebhookSubject, typeof changeWebhook> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/change",
  title: "Edit endpoint",
  load: loadWebhook,
  location: webhookLocation,
  fields: ({ webhook }) => fieldsOf(webhook),
  call: changeWebhook,
  input: (subject, values) => ({ ...idsOf(subject), ...membersOf(values) }),
  preview: (_, { webhook }, values) => {
    const { url, events, description } = membersOf(values);
    const changes = [
      { what: "URL", before: webhook.url, after: url ?? "" },
      { what: "Events", before: webhook.events.join(" "), after: events.join(" ") },
      { what: "Description", before: webhook.description ?? "none", after: description ?? "none" },
    ].filter(({ before, after }) => before !== after);
    return {
      sentences: [
        changes.length === 0
          ? "No changes."
          : "The new values apply to pending deliveries and to new events.",
      ],
      changes,
      verb: "Save",
    };
  },
  done: () => "The endpoint is updated.",
};

/** Disabling or enabling: two actions, so that the path says which. */
function enabling(disabled: boolean): Action<WebhookSubject, typeof changeWebhook> {
  const verb = disabled ? "Disable" : "Enable";
  return {
    path: `/console/apps/:appId/:mode/webhooks/:webhookId/${verb.toLowerCase()}`,
    title: `${verb} endpoint`,
    load: async (request) => {
      const subject = await loadWebhook(request);
      if (subject.webhook.disabled !== disabled) return subject;
      throw new PageError(
        { code: "not_found", message: `The endpoint is already ${disabled ? "disabled" : "enabled"}.` },
        "Nothing to do",
      );
    },
    location: webhookLocation,
    call: changeWebhook,
    input: (subject) => ({ ...idsOf(subject), ...{ disabled } }),
    preview: (_, { webhook }) => ({
      sentences: disabled
        ? [
          "Events are not recorded for it while it is disabled. Pending deliveries are sent when it is enabled.",
        ]
        : [
          "It receives new events again.",
          webhook.pending === 0
            ? "No pending deliveries."
            : `Pending deliveries are sent: ${webhook.pending}.`,
        ],
      changes: [{
        what: webhook.url,
        before: disabled ? "enabled" : "disabled",
        after: disabled ? "disabled" : "enabled",
      }],
      verb,
    }),
    done: () => `The endpoint is ${disabled ? "disabled" : "enabled"}.`,
  };
}

const rotate: Action<WebhookSubject, typeof rotateWebhookSecret> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/rotate",
  title: "Rotate secret",
  load: loadWebhook,
  location: webhookLocation,
  call: rotateWebhookSecret,
  input: (subject) => (idsOf(subject)),
  preview: (_, { webhook }) => ({
    sentences: [
      `${webhook.url} gets a new signing secret. The next page shows it once.`,
      "For 24 hours, messages are signed with the old secret too.",
    ],
    changes: [],
    verb: "Rotate secret",
  }),
  done: ({ app, webhook }, _, { secret }) =>
    signingSecretPage(app, secret, webhookPath(app, webhook.webhookId)),
};

const ping: Action<WebhookSubject, typeof pingWebhook> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/ping",
  title: "Send test event",
  load: loadWebhook,
  location: webhookLocation,
  call: pingWebhook,
  input: (subject) => (idsOf(subject)),
  preview: (_, { webhook }) => ({
    sentences: [
      `${webhook.url} receives an event of the type "ping" with a test payload. The delivery is listed on its page.`,
    ],
    changes: [],
    verb: "Send test event",
  }),
  done: () => "The test event is being sent. Reload the page to see its status.",
};

const remove: Action<WebhookSubject, typeof deleteWebhook> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/delete",
  title: "Remove endpoint",
  load: loadWebhook,
  location: (subject, request) => {
    const location = webhookLocation(subject);
    return request.form.get("step") === "confirm"
      ? { ...location, back: webhooksPath(subject.app) }
      : location;
  },
  call: deleteWebhook,
  input: (subject) => (idsOf(subject)),
  preview: (_, { webhook }) => ({
    sentences: [`${webhook.url} no longer receives events.`],
    changes: [{ what: webhook.url, before: "receives events", after: "removed" }],
    danger: {
      consequence: "Pending deliveries are not sent, and the list of deliveries is deleted.",
      typed: webhook.webhookId,
    },
    verb: "Remove",
  }),
  done: ({ webhook }) => `The endpoint ${webhook.url} is removed.`,
};

interface MessageSubject extends WebhookSubject {
  readonly messageId: string;
}

const redeliver: Action<MessageSubject, typeof redeliverMessage> = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/messages/:messageId/redeliver",
  title: "Send again",
  load: async (request) => {
    const subject = await loadWebhook(request);
    return "webhook" in subject ? { ...subject, messageId: request.params["messageId"] ?? "" } : subject;
  },
  location: webhookLocation,
  call: redeliverMessage,
  input: (subject) => ({ ...idsOf(subject), ...{ messageId: subject.messageId } }),
  preview: (_, { webhook, messageId }) => ({
    sentences: [
      `Message ${messageId} is sent to ${webhook.url} at once, whatever its status is.`,
      "It keeps its webhook-id, so that your server can detect a duplicate. It does not wait for earlier messages.",
    ],
    changes: [],
    verb: "Send again",
  }),
  done: (_, __, { status, lastStatus, lastError }) => {
    if (status === "delivered") return "The message was delivered.";
    return `Delivery failed: ${lastError ?? `the response was ${lastStatus}`}.`;
  },
};

/** Sending all messages of a status again: two actions, so that the path says which. */
function redeliveringAll(status: "failed" | "failing"): Action<WebhookSubject, typeof redeliverMessages> {
  return {
    path: `/console/apps/:appId/:mode/webhooks/:webhookId/redeliver-${status}`,
    title: "Send all again",
    load: loadWebhook,
    location: webhookLocation,
    call: redeliverMessages,
    input: (subject) => ({ ...idsOf(subject), status }),
    preview: (_, { webhook }) => ({
      sentences: [
        status === "failed"
          ? `Every message that was given up is sent to ${webhook.url} again.`
          : `Every message that is not delivered and failed at least once is sent to ${webhook.url} again.`,
        "Each keeps its webhook-id and its place in the order of its user. At most 10,000 are sent at a time.",
      ],
      changes: [],
      verb: "Send all again",
    }),
    done: (_, __, { messages }) => `Messages that are being sent again: ${messages}.`,
  };
}

/** The actions on webhook endpoints. */
export const WEBHOOK_ACTIONS = [
  actionRoutes(create),
  actionRoutes(change),
  actionRoutes(enabling(true)),
  actionRoutes(enabling(false)),
  actionRoutes(rotate),
  actionRoutes(ping),
  actionRoutes(remove),
  actionRoutes(redeliver),
  actionRoutes(redeliveringAll("failed")),
  actionRoutes(redeliveringAll("failing")),
];
