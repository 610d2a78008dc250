// The webhook endpoints of an app in one mode, and the deliveries to one of them.

import { loadWebhook, type ShownWebhook, webhookPath, webhooksPath } from "./webhooks_actions.tsx";
import { appOf, dataOf } from "../parts/subject.tsx";
import { csvFile } from "../parts/csv.ts";
import { StatusChoices } from "../parts/choices.tsx";
import { AmountText, Time, TimeExact, TimeOr } from "../parts/format.tsx";
import { crumbsOf } from "../parts/page.tsx";
import { CsvLink, listAsAsked, Pager } from "../parts/pager.tsx";
import { mayChange, type PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listAttempts, listMessages, listWebhooks } from "../../contract/webhooks.ts";

/** `/console/apps/{appId}/{mode}/webhooks` */
const webhooksPage: PageRoute = {
  path: "/console/apps/:appId/:mode/webhooks",
  async show(request) {
    const app = appOf(request);
    const all = await request.ask.admin(listWebhooks, { appId: app.appId }).then(dataOf);
    const webhooks = all.filter(({ mode }) => mode === app.mode);
    return {
      title: "Webhooks",
      crumbs: crumbsOf(app, "Webhooks"),
      content: (
        <>
          <div class="head">
            <h1>Webhooks</h1>
            {mayChange(request.session)
              ? <a class="button primary" href={`${webhooksPath(app)}/new`}>Add endpoint</a>
              : null}
          </div>
          <section class="card">
            <h2 class="visually-hidden">Endpoints</h2>
            <Table
              empty={`No endpoints in ${app.mode} mode yet. Add one to receive events about limits, credits, subscriptions and merges.`}
              rows={webhooks}
              columns={[
                {
                  head: "URL",
                  cell: ({ webhookId, url }) => (
                    <a class="row wrap" href={webhookPath(app, webhookId)}>{url}</a>
                  ),
                },
                { head: "Events", cell: ({ events }) => events.join(", ") },
                { head: "Status", cell: (webhook) => <WebhookStatus webhook={webhook} /> },
                {
                  head: "Pending",
                  kind: "number",
                  cell: ({ pending }) => <AmountText value={pending} />,
                },
                {
                  head: "Last delivery",
                  cell: ({ lastSuccessAt }) => <TimeOr at={lastSuccessAt} none="none yet" />,
                },
              ]}
            />
          </section>
        </>
      ),
    };
  },
};

function WebhookStatus({ webhook: { disabled, failingSince, lastSuccessAt } }: { webhook: ShownWebhook }) {
  if (disabled) return <span class="tag">disabled</span>;
  if (failingSince !== null) return <span class="tag bad" title={failingSince}>failing</span>;
  if (lastSuccessAt === null) return <span class="tag">no deliveries yet</span>;
  return <span class="tag good">healthy</span>;
}

/** `/console/apps/{appId}/{mode}/webhooks/failing`: the badge of the navigation, which loads it after the page. */
const failingPage: PageRoute = {
  path: "/console/apps/:appId/:mode/webhooks/failing",
  async show(request) {
    const app = appOf(request);
    const all = await request.ask.admin(listWebhooks, { appId: app.appId }).then(dataOf);
    const failing = all.filter(({ mode, disabled, failingSince }) =>
      mode === app.mode && !disabled && failingSince !== null
    );
    return {
      title: "Failing endpoints",
      crumbs: crumbsOf(app, { title: "Webhooks", href: webhooksPath(app) }, "Failing endpoints"),
      content: failing.length === 0 ? <p class="empty">No endpoint fails.</p> : (
        <p>
          <a id="failing" class="tag bad" href={webhooksPath(app)}>{failing.length} failing</a>
        </p>
      ),
    };
  },
};

type ShownMessage = AnswerOf<typeof listMessages>["messages"][number];

const STATUSES = ["pending", "failing", "delivered", "failed"] as const;
type Status = (typeof STATUSES)[number];

/** `/console/apps/{appId}/{mode}/webhooks/{webhookId}` */
const webhookPage: PageRoute = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId",
  async show(request) {
    const subject = await loadWebhook(request);
    const { app, webhook } = subject;
    const { query, path, ask, session } = request;
    const status = STATUSES.find((each) => each === query.get("status"));
    const { appId } = app;
    const { webhookId } = webhook;
    const listed = await listAsAsked(query, {
      read: (part) => ask.admin(listMessages, { appId, webhookId, status, ...part }),
      rowsOf: ({ messages }) => messages,
      fileOf: (rows) => deliveriesFile(app.mode, rows),
    });
    if (!("rows" in listed)) return listed;
    const { rows: messages, offset } = listed;
    const mayEdit = mayChange(session);
    return {
      title: webhook.url,
      crumbs: crumbsOf(app, { title: "Webhooks", href: webhooksPath(app) }, webhook.url),
      content: (
        <>
          <div class="head">
            <h1>{webhook.url}</h1>
            <WebhookStatus webhook={webhook} />
          </div>
          <section class="card">
            <h2 class="visually-hidden">Details</h2>
            <Facts webhook={webhook} />
            {mayEdit ? <Buttons path={path} webhook={webhook} /> : null}
          </section>
          <section class="card">
            <div class="head">
              <h2>Deliveries</h2>
              <StatusChoices label="Deliveries by status" path={path} statuses={STATUSES} chosen={status} />
            </div>
            {mayEdit && !webhook.disabled && messages.length > 0 &&
                (status === "failing" || status === "failed")
              ? (
                <div class="buttons">
                  <a class="button" href={`${path}/redeliver-${status}`}>Send all again</a>
                </div>
              )
              : null}
            <Deliveries path={path} messages={messages} status={status} mayEdit={mayEdit} />
            <Pager query={query} offset={offset} rows={messages.length} />
          </section>
          {messages.length === 0 ? null : (
            <p class="hint">
              <CsvLink query={query} />
            </p>
          )}
        </>
      ),
    };
  },
};

function deliveriesFile(mode: string, rows: readonly ShownMessage[]) {
  return csvFile(
    `messages-${mode}`,
    ["createdAt", "messageId", "type", "status", "attempts", "lastStatus", "lastError", "data"],
    rows.map((row) => ({ ...row, data: JSON.stringify(row.data) })),
  );
}

function Facts({ webhook }: { webhook: ShownWebhook }) {
  const { webhookId, description, events, createdAt, lastSuccessAt, failingSince, pending } = webhook;
  return (
    <dl class="facts">
      {description === null ? null : (
        <>
          <dt>Description</dt>
          <dd>{description}</dd>
        </>
      )}
      <dt>Events</dt>
      <dd>{events.join(", ")}</dd>
      <dt>ID</dt>
      <dd>
        <code>{webhookId}</code>
      </dd>
      <dt>Created</dt>
      <dd>
        <TimeExact at={createdAt} />
      </dd>
      <dt>Last delivery</dt>
      <dd>
        <TimeOr at={lastSuccessAt} none="none yet" />
      </dd>
      {failingSince === null ? null : (
        <>
          <dt>Failing since</dt>
          <dd>
            <TimeExact at={failingSince} />
          </dd>
        </>
      )}
      <dt>Pending</dt>
      <dd>
        <AmountText value={pending} />
      </dd>
    </dl>
  );
}

function Buttons({ path, webhook: { disabled } }: { path: string; webhook: ShownWebhook }) {
  const link = (name: string, text: string) => <a class="button" href={`${path}/${name}`}>{text}</a>;
  return (
    <div class="buttons">
      {disabled ? null : link("ping", "Send test event")}
      {link("change", "Edit")}
      {disabled ? link("enable", "Enable") : link("disable", "Disable")}
      {link("rotate", "Rotate secret")}
      {link("delete", "Remove")}
    </div>
  );
}

const STATUS_TAGS = { pending: "warn", delivered: "good", failed: "bad" } as const;

function Deliveries({ path, messages, status, mayEdit }: {
  path: string;
  messages: readonly ShownMessage[];
  status: Status | undefined;
  mayEdit: boolean;
}) {
  if (messages.length === 0) {
    return (
      <p class="empty">
        {status === undefined
          ? "No deliveries yet, or all of them are past their retention: 7 days for delivered, 30 days for failed."
          : `No ${status} deliveries`}
      </p>
    );
  }
  return (
    <Table
      rows={messages}
      columns={[
        { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
        {
          head: "Event type",
          cell: ({ type, messageId, data }) => (
            <details class="more">
              <summary>{type}</summary>
              <a href={`${path}/messages/${messageId}`}>{messageId}</a>
              <pre>{JSON.stringify(data, null, 2)}</pre>
            </details>
          ),
        },
        {
          head: "Status",
          cell: (message) => <span class={`tag ${STATUS_TAGS[message.status]}`}>{message.status}</span>,
        },
        { head: "Attempts", kind: "number", cell: ({ attempts }) => attempts },
        {
          head: "Last response",
          cell: ({ messageId, lastStatus, lastError }) => {
            const text = lastStatus ?? lastError;
            return text === null ? "" : <a href={`${path}/messages/${messageId}`}>{text}</a>;
          },
        },
        { head: "Next attempt", cell: ({ nextAttemptAt }) => <TimeOr at={nextAttemptAt} none="none" /> },
        mayEdit
          ? {
            head: "Actions",
            hidesHead: true,
            kind: "number",
            cell: ({ messageId }) => (
              <a class="row" href={`${path}/messages/${messageId}/redeliver`}>Send again</a>
            ),
          }
          : null,
      ]}
    />
  );
}

/** `/console/apps/{appId}/{mode}/webhooks/{webhookId}/messages/{messageId}`: the attempts to deliver a message. */
const messagePage: PageRoute = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId/messages/:messageId",
  async show(request) {
    const subject = await loadWebhook(request);
    const { app, webhook: { webhookId, url } } = subject;
    const messageId = request.params["messageId"] ?? "";
    const asked = { appId: app.appId, webhookId, messageId };
    const attempts = await request.ask.admin(listAttempts, asked).then(dataOf);
    return {
      title: "Attempts",
      crumbs: crumbsOf(
        app,
        { title: "Webhooks", href: webhooksPath(app) },
        { title: url, href: webhookPath(app, webhookId) },
        messageId,
      ),
      content: (
        <>
          <div class="head">
            <h1>Attempts</h1>
            <code class="soft">{messageId}</code>
          </div>
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {attempts.length === 0 ? <p class="empty">No attempts yet.</p> : <Attempts attempts={attempts} />}
          </section>
          <p class="hint">The newest 20 attempts, with the first 1 KiB of each response.</p>
        </>
      ),
    };
  },
};

function Attempts({ attempts }: { attempts: AnswerOf<typeof listAttempts> }) {
  return (
    <Table
      rows={attempts}
      columns={[
        { head: "Time", cell: ({ at }) => <TimeExact at={at} /> },
        {
          head: "Status",
          cell: ({ status, error }) =>
            error === null
              ? <span class="tag good">{status}</span>
              : <span class="tag bad">{status ?? "no response"}</span>,
        },
        { head: "Error", cell: ({ error }) => error ?? <span class="soft">none</span> },
        { head: "Took", kind: "number", cell: ({ tookMs }) => <>{tookMs} ms</> },
        {
          head: "Response",
          cell: ({ answer }) => answer === null ? <span class="soft">empty</span> : <pre>{answer}</pre>,
        },
      ]}
    />
  );
}

export const WEBHOOK_PAGES: readonly PageRoute[] = [webhooksPage, failingPage, webhookPage, messagePage];
