// "Why was this refused?": the last refusals, a form, and the answer of the call explain. Without a call in the query, it
// explains the newest refusal. It changes nothing, so the form is a GET.

import { loadUser, userLocation, type UserSubject } from "../parts/subject.tsx";
import {
  type Fault,
  faultsOf,
  type Field,
  Fields,
  FormFaults,
  type FormInput,
  numberIn,
  textIn,
  type Values,
  valuesOf,
} from "../parts/form.tsx";
import { AmountText, amountText, TimeOr } from "../parts/format.tsx";
import { readCatalog } from "../parts/catalog.ts";
import { helpFor, HelpList, waitsOf } from "../parts/help.tsx";
import { userPath } from "../parts/page.tsx";
import { nowOf } from "../parts/daily_usage.tsx";
import { readRefusals, RefusalsOfUser } from "./user_activity.tsx";
import { metadataOf } from "../../../src/domain/values/match.ts";
import { Counting } from "../parts/limit_bar.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import { type Column, Table } from "../parts/table.tsx";
import type { AnswerOf, InputOf } from "../../contract/definition.ts";
import { explain } from "../../contract/metering.ts";

type Explanation = AnswerOf<typeof explain>;
type ExplainedGroup = Explanation["groups"][number];

const FIELDS: readonly Field[] = [
  {
    name: "event",
    label: "Event type",
    kind: "text",
    isRequired: true,
    hint: "As sent by your server, such as image.render",
  },
  { name: "count", label: "Count", kind: "number", hint: "Default: 1" },
  { name: "inputTokens", label: "Input tokens", kind: "number" },
  { name: "maxOutputTokens", label: "Max output tokens", kind: "number" },
  { name: "quantity", label: "Quantity or seconds", kind: "number" },
  {
    name: "inputCostCents",
    label: "Cost in cents",
    kind: "number",
    hint: "Instead of the price of the model",
  },
  { name: "runId", label: "Run ID", kind: "text", hint: "For a call within a run of an agent" },
  {
    name: "metadata",
    label: "Metadata",
    kind: "long",
    hint: 'A JSON object, such as {"model": "gpt-4o-mini"}',
  },
];

const AMOUNTS = ["count", "inputTokens", "maxOutputTokens", "quantity", "inputCostCents"];

/** The newest refusals that the page lists. */
const REFUSALS_SHOWN = "10";

/** The input of the call; an error where the metadata is not valid JSON. */
function inputOf(userId: string, values: Values): FormInput<InputOf<typeof explain>> | Fault {
  const text = (values["metadata"] ?? "").trim();
  let metadata: Record<string, unknown> | undefined;
  try {
    metadata = text === "" ? undefined : JSON.parse(text);
  } catch (error) {
    return { field: "metadata", message: `Invalid JSON: ${(error as Error).message}` };
  }
  const amounts = AMOUNTS.map((name) => [name, numberIn(values[name] ?? "")]);
  const runId = textIn(values["runId"] ?? "");
  return { userId, event: values["event"], metadata, runId, ...Object.fromEntries(amounts) };
}

/** Calls explain with the values of the form. */
async function explanationOf(
  { ask }: PageRequest,
  { app, user }: UserSubject,
  values: Values,
): Promise<Explanation | readonly Fault[]> {
  const input = inputOf(user.userId, values);
  if ("field" in input) return [input];
  // The schema of the call checks it.
  const answer = await ask.app(app, explain, input as InputOf<typeof explain>);
  return answer.ok ? answer.data : faultsOf(answer.error, FIELDS);
}

/** `/console/apps/{appId}/{mode}/users/{id}/explain` */
export const explainPage: PageRoute = {
  path: "/console/apps/:appId/:mode/users/:userId/explain",
  async show(request) {
    const subject = await loadUser(request);
    const { query } = request;
    const [catalog, refusals, now] = await Promise.all([
      readCatalog(request, subject.app),
      readRefusals(request, subject, REFUSALS_SHOWN),
      nowOf(request, subject.app),
    ]);
    const given = valuesOf(FIELDS, query);
    const event = query.get("event") ?? refusals[0]?.event;
    const values = event === undefined ? given : { ...given, event };
    const result = event === undefined ? [] : await explanationOf(request, subject, values);
    const [explanation, faults] = "text" in result ? [result, []] : [null, result];
    const { crumbs } = userLocation(subject);
    const title = "Why was this refused?";
    return {
      title,
      crumbs: [...crumbs, { title, href: null }],
      status: faults.length > 0 ? 400 : 200,
      content: (
        <>
          <h1>{title}</h1>
          <p class="soft">
            Simulates a request of{" "}
            {subject.user.userId}. Nothing is charged. Caps of the workspace are not checked.
          </p>
          {explanation === null ? null : (
            <Answer
              request={request}
              subject={subject}
              values={values}
              explanation={explanation}
              now={now}
            />
          )}
          <section class="card">
            <h2>Request</h2>
            <FormFaults faults={faults} />
            <form method="get" action={request.path} class="grid">
              <Fields fields={FIELDS} values={values} faults={faults} />
              <div class="buttons">
                <button type="submit" class="primary">Explain</button>
              </div>
            </form>
          </section>
          <section class="card">
            <h2>Last refusals</h2>
            {refusals.length === 0
              ? <p class="empty">No refusals in the last 90 days</p>
              : <RefusalsOfUser subject={subject} catalog={catalog} refusals={refusals} now={now} />}
          </section>
        </>
      ),
    };
  },
};

function Answer({ request, subject, values, explanation, now }: {
  request: PageRequest;
  subject: UserSubject;
  values: Values;
  explanation: Explanation;
  now: number;
}) {
  const { app, user } = subject;
  const { allowed, text, groups, credits, subscription, levels = [], refusedBy = [] } = explanation;
  return (
    <>
      <div class={`note ${allowed ? "good" : "bad"}`} role="status">
        <p>{text}</p>
        {allowed
          ? null
          : <Helps request={request} subject={subject} values={values} explanation={explanation} now={now} />}
      </div>
      <section class="card">
        <h2>{subscription === null ? "No plan" : `Limits of ${subscription.planName}`}</h2>
        {groups.length === 0
          ? <p class="empty">Without a plan there are no limits; only credits can be used.</p>
          : <Limits of={user.userId} groups={groups} user={user} />}
      </section>
      <section class="card">
        <h2>Credits in the order of use</h2>
        {credits.length === 0 ? <p class="empty">No credits remaining</p> : <Credits credits={credits} />}
      </section>
      {levels.map((level) => (
        <section class="card">
          <div class="head">
            <h2>
              Limits of <a href={userPath(app, level.userId)}>{level.userId}</a>
            </h2>
            {refusedBy.includes(level.userId) ? <span class="tag bad">refuses</span> : null}
          </div>
          {level.groups.length === 0
            ? <p class="empty">No limits</p>
            : <Limits of={level.userId} groups={level.groups} />}
          {level.credits.length === 0 ? null : <Credits credits={level.credits} />}
        </section>
      ))}
    </>
  );
}

/** What would allow the call, where the user's own plan refuses it. */
function Helps({ request, subject, values, explanation, now }: Parameters<typeof Answer>[0]) {
  const { reasons, refusedBy, groups } = explanation;
  if (refusedBy !== undefined && !refusedBy.includes(subject.user.userId)) return null;
  const text = values["metadata"]?.trim() ?? "";
  const refusing = groups.filter(({ fits }) => fits === false);
  const help = helpFor(request, subject, {
    event: values["event"] ?? "",
    metadata: text === "" ? null : metadataOf(text),
    reasons,
    groups: refusing,
    explanation,
  });
  return <HelpList request={request} subject={subject} help={help} waits={waitsOf(subject, refusing, now)} />;
}

/** @param user the user of the limits; absent for a user above, which has a page with its windows */
function Limits(
  { of, groups, user }: { of: string; groups: readonly ExplainedGroup[]; user?: UserSubject["user"] },
) {
  const columns = user === undefined ? LIMIT_COLUMNS : [...LIMIT_COLUMNS, windowColumn(user)];
  return (
    <div class="scroll" tabindex={0} role="region" aria-label={`Limits of ${of}`}>
      <Table rows={groups} columns={columns} />
    </div>
  );
}

/** What each limit counts now: its own window or that of the plan, the last seconds, or what is in flight. */
function windowColumn({ counters, period }: UserSubject["user"]): Column<ExplainedGroup> {
  const windows = new Map(counters.map((counter) => [counter.groupId, counter]));
  const cell = ({ groupId }: ExplainedGroup) => <Counting own={{ period, ...windows.get(groupId) }} />;
  return { head: "Counts", cell };
}

function Credits({ credits }: Pick<Explanation, "credits">) {
  return (
    <Table
      rows={credits}
      columns={[
        { head: "Pack", cell: ({ balanceId, packName }) => <span title={balanceId}>{packName}</span> },
        {
          head: "Left",
          kind: "number",
          cell: ({ remaining, unit }) => <AmountText value={remaining} unit={unit} />,
        },
        { head: "Expires", cell: ({ expiresAt }) => <TimeOr at={expiresAt} none="never" /> },
        { head: "Applies", cell: ({ matches }) => matches ? "yes" : "no" },
        {
          head: "Would be used",
          kind: "number",
          cell: ({ wouldPay, unit }) => <AmountText value={wouldPay} unit={unit} />,
        },
      ]}
    />
  );
}

const NoValue = () => <span class="soft">–</span>;

function amountColumn(
  head: string,
  amountOf: (group: ExplainedGroup) => number | null,
): Column<ExplainedGroup> {
  const cell = (group: ExplainedGroup) => {
    const amount = amountOf(group);
    return amount === null ? <NoValue /> : <AmountText value={amount} unit={group.unit} />;
  };
  return { head, kind: "number", cell };
}

const LIMIT_COLUMNS: readonly Column<ExplainedGroup>[] = [
  { head: "Limit", cell: ({ groupId, label }) => <span title={groupId}>{label}</span> },
  { head: "Applies", cell: (group) => group.covers ? "yes" : `no: ${whyNot(group)}` },
  amountColumn("Needed", ({ need }) => need),
  amountColumn("Available", ({ room }) => room),
  amountColumn("Used", ({ current, held }) => current - held),
  amountColumn("Held", ({ held }) => held),
  {
    head: "Effective limit",
    kind: "number",
    cell: ({ gate, headroom, unit }) =>
      headroom === null ? <NoValue /> : (
        <span
          title={headroom.mode === "percent"
            ? `${headroom.value} % of the quota`
            : `${headroom.value} times the amount needed`}
        >
          <AmountText value={gate} unit={unit} />
        </span>
      ),
  },
  {
    head: "Quota",
    kind: "number",
    cell: ({ quota, unit, isCustom, overage }) => (
      <div>
        <AmountText value={quota} unit={unit} />
        {isCustom ? <span class="tag">custom</span> : null}
        {overage === undefined
          ? null
          : <span class="soft sub">{amountText(overage, unit)} sold past it</span>}
      </div>
    ),
  },
  {
    head: "Enough left",
    cell: ({ fits }) =>
      fits === null ? <NoValue /> : <span class={`tag ${fits ? "good" : "bad"}`}>{fits ? "yes" : "no"}</span>,
  },
];

function whyNot({ why, metadata = {} }: ExplainedGroup): string {
  if (why !== "metadata") return "no rule matches the event type";
  return Object.entries(metadata).map(([key, { wanted, given }]) =>
    `${key} is ${given === null ? "missing" : `"${given}"`}, expected "${wanted}"`
  ).join("; ");
}
