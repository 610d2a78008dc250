// The webhooks of an app in one mode, and what became of the messages of one.

import {
  aboutWebhook,
  type ShownMessage,
  type ShownWebhook,
  webhookPath,
  webhooksPath,
} from "./webhooks_actions.tsx";
import { appOf, refusedPage } from "../parts/subject.tsx";
import { csvFile, csvQuery } from "../parts/csv.ts";
import { ActsHead, AmountText, Time, TimeExact, TimeOr } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";
import { listAsAsked, Pager } from "../parts/pager.tsx";
import { mayChange, type PageAt } from "../parts/page_context.ts";

/** `/console/apps/{appId}/{mode}/webhooks` */
const webhooksPage: PageAt = {
  path: "/console/apps/:appId/:mode/webhooks",
  async show(request) {
    const app = appOf(request);
    const answer = await request.ask.admin<ShownWebhook[]>("listWebhooks", { appId: app.appId });
    if (!answer.ok) return refusedPage(answer.error);
    const webhooks = answer.data.filter(({ mode }) => mode === app.mode);
    const changes = mayChange(request.session);
    return {
      title: "Webhooks",
      crumbs: [{ title: app.name, href: appPath(app) }, { title: "Webhooks", href: null }],
      content: (
        <>
          <div class="head">
            <h1>Webhooks</h1>
            {changes ? <a class="button primary" href={`${webhooksPath(app)}/new`}>Make a webhook</a> : null}
          </div>
          <section class="sheet">
            <h2 class="visually-hidden">The list</h2>
            {webhooks.length === 0
              ? (
                <p class="empty">
                  No address is told what happens in {app.mode}{" "}
                  mode. Make a webhook to hear of thresholds, credits, subscriptions and merges.
                </p>
              )
              : (
                <table class="stack">
                  <thead>
                    <tr>
                      <th>Address</th>
                      <th>Told</th>
                      <th>State</th>
                      <th class="number">Waiting</th>
                      <th>Last delivery</th>
                    </tr>
                  </thead>
                  <tbody>
                    {webhooks.map((webhook) => (
                      <tr>
                        <td data-label="Address">
                          <a class="row wrap" href={webhookPath(app, webhook.webhookId)}>{webhook.url}</a>
                        </td>
                        <td data-label="Told">{webhook.events.join(", ")}</td>
                        <td data-label="State">
                          <WebhookState webhook={webhook} />
                        </td>
                        <td data-label="Waiting" class="number">
                          <AmountText value={webhook.pending} />
                        </td>
                        <td data-label="Last delivery">
                          <TimeOr at={webhook.lastSuccessAt} none="none yet" />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
          </section>
        </>
      ),
    };
  },
};

/** Whether messages get through. */
function WebhookState({ webhook: { disabled, failingSince, lastSuccessAt } }: { webhook: ShownWebhook }) {
  if (disabled) return <span class="tag">disabled</span>;
  if (failingSince !== null) return <span class="tag bad" title={failingSince}>failing</span>;
  if (lastSuccessAt === null) return <span class="tag">nothing delivered yet</span>;
  return <span class="tag good">works</span>;
}

const STATUSES = ["pending", "delivered", "failed"] as const;
const STATUS_TAGS = { pending: "warn", delivered: "good", failed: "bad" } as const;

/** `/console/apps/{appId}/{mode}/webhooks/{webhookId}` */
const webhookPage: PageAt = {
  path: "/console/apps/:appId/:mode/webhooks/:webhookId",
  async show(request) {
    const subject = await aboutWebhook(request);
    if (!("webhook" in subject)) return subject;
    const { app, webhook } = subject;
    const { query, path, ask } = request;
    const status = STATUSES.find((each) => each === query.get("status"));
    const { appId } = app;
    const { webhookId } = webhook;
    const listed = await listAsAsked(query, {
      read: (part) =>
        ask.admin<{ messages: ShownMessage[] }>("listMessages", { appId, webhookId, status, ...part }),
      rowsOf: ({ messages }) => messages,
      fileOf: (rows) =>
        csvFile(
          `messages-${app.mode}`,
          ["createdAt", "messageId", "type", "status", "attempts", "lastStatus", "lastError", "data"],
          rows.map((row) => [
            row.createdAt,
            row.messageId,
            row.type,
            row.status,
            row.attempts,
            row.lastStatus,
            row.lastError,
            JSON.stringify(row.data),
          ]),
        ),
    });
    if (!("rows" in listed)) return listed;
    const { rows: messages, offset } = listed;
    const changes = mayChange(request.session);
    return {
      title: webhook.url,
      crumbs: [
        { title: app.name, href: appPath(app) },
        { title: "Webhooks", href: webhooksPath(app) },
        { title: webhook.url, href: null },
      ],
      content: (
        <>
          <div class="head">
            <h1>{webhook.url}</h1>
            <WebhookState webhook={webhook} />
          </div>
          <section class="sheet">
            <h2 class="visually-hidden">What it is</h2>
            <dl class="facts">
              {webhook.description === null ? null : (
                <>
                  <dt>Description</dt>
                  <dd>{webhook.description}</dd>
                </>
              )}
              <dt>Told</dt>
              <dd>{webhook.events.join(", ")}</dd>
              <dt>Id</dt>
              <dd>
                <code>{webhook.webhookId}</code>
              </dd>
              <dt>Made</dt>
              <dd>
                <TimeExact at={webhook.createdAt} />
              </dd>
              <dt>Last delivery</dt>
              <dd>
                <TimeOr at={webhook.lastSuccessAt} none="none yet" />
              </dd>
              {webhook.failingSince === null ? null : (
                <>
                  <dt>Failing since</dt>
                  <dd>
                    <TimeExact at={webhook.failingSince} />
                  </dd>
                </>
              )}
              <dt>Waiting</dt>
              <dd>
                <AmountText value={webhook.pending} /> messages
              </dd>
            </dl>
            {changes
              ? (
                <div class="buttons">
                  {webhook.disabled ? null : <a class="button" href={`${path}/ping`}>Ping</a>}
                  <a class="button" href={`${path}/change`}>Change</a>
                  <a class="button" href={`${path}/${webhook.disabled ? "enable" : "disable"}`}>
                    {webhook.disabled ? "Enable" : "Disable"}
                  </a>
                  <a class="button" href={`${path}/rotate`}>New secret</a>
                  <a class="button" href={`${path}/delete`}>Remove</a>
                </div>
              )
              : null}
          </section>
          <section class="sheet">
            <div class="head">
              <h2>Messages</h2>
              <nav class="choices" aria-label="Messages by status">
                <a href={path} aria-current={status === undefined ? "true" : undefined}>all</a>
                {STATUSES.map((each) => (
                  <a href={`${path}?status=${each}`} aria-current={each === status ? "true" : undefined}>
                    {each}
                  </a>
                ))}
              </nav>
            </div>
            {messages.length === 0
              ? (
                <p class="empty">
                  {status === undefined
                    ? "It was told nothing yet, or what it was told is past its time: 7 days for what arrived, 30 for what failed."
                    : `No message is ${status}.`}
                </p>
              )
              : (
                <table class="stack">
                  <thead>
                    <tr>
                      <th>Happened</th>
                      <th>Type</th>
                      <th>Status</th>
                      <th class="number">Attempts</th>
                      <th>Last answer</th>
                      <th>Next attempt</th>
                      {changes ? <ActsHead /> : null}
                    </tr>
                  </thead>
                  <tbody>
                    {messages.map((message) => (
                      <tr>
                        <td data-label="Happened">
                          <Time at={message.createdAt} />
                        </td>
                        <td data-label="Type">
                          <details class="more">
                            <summary>{message.type}</summary>
                            <code>{message.messageId}</code>
                            <pre>{JSON.stringify(message.data, null, 2)}</pre>
                          </details>
                        </td>
                        <td data-label="Status">
                          <span class={`tag ${STATUS_TAGS[message.status]}`}>{message.status}</span>
                        </td>
                        <td data-label="Attempts" class="number">{message.attempts}</td>
                        <td data-label="Last answer">
                          {message.lastStatus ?? ""} {message.lastError ?? ""}
                        </td>
                        <td data-label="Next attempt">
                          <TimeOr at={message.nextAttemptAt} none="none" />
                        </td>
                        {changes
                          ? (
                            <td class="number">
                              <a class="row" href={`${path}/messages/${message.messageId}/redeliver`}>
                                Send again
                              </a>
                            </td>
                          )
                          : null}
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
            <Pager query={query} offset={offset} rows={messages.length} />
          </section>
          {messages.length === 0 ? null : (
            <p class="hint">
              <a href={csvQuery(query)} download>The newest 1,000 as CSV</a>
            </p>
          )}
        </>
      ),
    };
  },
};

export const WEBHOOK_PAGES: readonly PageAt[] = [webhooksPage, webhookPage];
