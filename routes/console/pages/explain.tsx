// "Why was this refused?": one form, and what explain answers to it. It decides nothing, so a browser may load it again.

import type { Unit } from "../../../src/domain/catalog/plan.ts";
import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { aboutUser, placeOfUser, type UserSubject } from "../parts/subject.tsx";
import {
  type Fault,
  faultsOf,
  type Field,
  Fields,
  FormFaults,
  numberIn,
  type Values,
  valuesOf,
} from "../parts/form.tsx";
import { AmountText, TimeOr } from "../parts/format.tsx";
import type { PageAt } from "../parts/page_context.ts";

interface ExplainedGroup {
  readonly groupId: string;
  readonly label: string;
  readonly unit: Unit;
  readonly covers: boolean;
  readonly why: "matched" | "event" | "metadata";
  readonly metadata?: Readonly<Record<string, { readonly wanted: string; readonly given: string | null }>>;
  readonly quota: number;
  readonly isCustom: boolean;
  readonly headroom: { readonly mode: "percent" | "multiplier"; readonly value: number } | null;
  readonly gate: number | null;
  readonly current: number;
  readonly held: number;
  readonly need: number | null;
  readonly room: number | null;
  readonly fits: boolean | null;
}

interface Explanation {
  readonly allowed: boolean;
  readonly reasons: readonly string[];
  readonly text: string;
  readonly subscription: { readonly planName: string } | null;
  readonly groups: readonly ExplainedGroup[];
  readonly credits: readonly {
    readonly balanceId: string;
    readonly packName: string;
    readonly unit: Unit;
    readonly remaining: number;
    readonly expiresAt: string | null;
    readonly matches: boolean;
    readonly wouldPay: number;
  }[];
}

const FIELDS: readonly Field[] = [
  {
    name: "event",
    label: "Event",
    kind: "text",
    isRequired: true,
    hint: "As your backend names it, such as image.render",
  },
  { name: "count", label: "Count", kind: "number", hint: "1 where it is empty" },
  { name: "inputTokens", label: "Input tokens", kind: "number" },
  { name: "maxOutputTokens", label: "Longest answer, in tokens", kind: "number" },
  { name: "quantity", label: "Seconds, or quantity", kind: "number" },
  { name: "inputCostCents", label: "Cost, in cents", kind: "number", hint: "In place of the model's price" },
  {
    name: "metadata",
    label: "Metadata",
    kind: "long",
    hint: 'A JSON object, such as {"model": "gpt-4o-mini"}',
  },
];

const AMOUNTS = ["count", "inputTokens", "maxOutputTokens", "quantity", "inputCostCents"];

/** What the form asks of explain; a fault where the metadata are no JSON. */
function membersOf(userId: string, values: Values): Record<string, unknown> | Fault {
  const text = (values["metadata"] ?? "").trim();
  let metadata: unknown;
  try {
    metadata = text === "" ? undefined : JSON.parse(text);
  } catch (error) {
    return { field: "metadata", message: `This is no JSON: ${(error as Error).message}` };
  }
  const amounts = AMOUNTS.map((name) => [name, numberIn(values[name] ?? "")]);
  return { userId, event: values["event"], metadata, ...Object.fromEntries(amounts) };
}

function isFault(asked: Record<string, unknown> | Fault): asked is Fault {
  return "field" in asked;
}

/** `/console/apps/{appId}/{mode}/users/{id}/explain` */
export const explainPage: PageAt = {
  path: "/console/apps/:appId/:mode/users/:userId/explain",
  async show(request) {
    const subject = await aboutUser(request);
    if (!("user" in subject)) return subject;
    const { ask, query } = request;
    const { app, user } = subject;
    const values = valuesOf(FIELDS, query);
    let explanation: Explanation | null = null;
    let faults: readonly Fault[] = [];
    if (query.has("event")) {
      const asked = membersOf(user.userId, values);
      if (isFault(asked)) faults = [asked];
      else {
        const answer = await ask.app<Explanation>(app, "explain", asked);
        if (answer.ok) explanation = answer.data;
        else faults = faultsOf(answer.error as Refusal, FIELDS);
      }
    }
    const { crumbs } = placeOfUser(request, subject);
    const title = "Why was this refused?";
    return {
      title,
      crumbs: [...crumbs, { title, href: null }],
      status: faults.length > 0 ? 400 : 200,
      content: (
        <>
          <h1>{title}</h1>
          <p class="soft">
            What a reserve of {user.userId} would be answered now. Asking holds nothing and counts nothing.
          </p>
          {explanation === null ? null : <Answer subject={subject} explanation={explanation} />}
          <section class="sheet">
            <h2>The call</h2>
            <FormFaults faults={faults} />
            <form method="get" action={request.path} class="grid">
              <Fields fields={FIELDS} values={values} faults={faults} />
              <div class="buttons">
                <button type="submit" class="primary">Explain</button>
              </div>
            </form>
          </section>
        </>
      ),
    };
  },
};

function Answer({ explanation }: { subject: UserSubject; explanation: Explanation }) {
  const { allowed, text, groups, credits, subscription } = explanation;
  return (
    <>
      <div class={`note ${allowed ? "good" : "bad"}`} role="status">
        <p>{text}</p>
      </div>
      <section class="sheet">
        <h2>{subscription === null ? "No plan" : `Limits of ${subscription.planName}`}</h2>
        {groups.length === 0
          ? <p class="empty">Without a plan no limit covers the call; credits alone can pay.</p>
          : (
            <div class="scroll" tabindex={0} role="region" aria-label="Limits">
              <table class="stack">
                <thead>
                  <tr>
                    <th>Limit</th>
                    <th>Covers it?</th>
                    <th class="number">Needs</th>
                    <th class="number">Room</th>
                    <th class="number">Used</th>
                    <th class="number">Held</th>
                    <th class="number">Gate</th>
                    <th class="number">Quota</th>
                    <th>Fits?</th>
                  </tr>
                </thead>
                <tbody>{groups.map((group) => <GroupRow group={group} />)}</tbody>
              </table>
            </div>
          )}
      </section>
      <section class="sheet">
        <h2>Credits, in the order in which they pay</h2>
        {credits.length === 0 ? <p class="empty">No balance has something left.</p> : (
          <table class="stack">
            <thead>
              <tr>
                <th>Pack</th>
                <th class="number">Left</th>
                <th>Expires</th>
                <th>Covers it?</th>
                <th class="number">Would pay</th>
              </tr>
            </thead>
            <tbody>
              {credits.map((balance) => (
                <tr>
                  <td data-label="Pack">
                    <span title={balance.balanceId}>{balance.packName}</span>
                  </td>
                  <td data-label="Left" class="number">
                    <AmountText value={balance.remaining} unit={balance.unit} />
                  </td>
                  <td data-label="Expires">
                    <TimeOr at={balance.expiresAt} none="never" />
                  </td>
                  <td data-label="Covers it?">{balance.matches ? "yes" : "no"}</td>
                  <td data-label="Would pay" class="number">
                    <AmountText value={balance.wouldPay} unit={balance.unit} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
    </>
  );
}

function GroupRow({ group }: { group: ExplainedGroup }) {
  const { label, groupId, unit, covers, quota, isCustom, gate, headroom, current, held, need, room, fits } =
    group;
  const value = (amount: number | null) =>
    amount === null ? <span class="soft">–</span> : <AmountText value={amount} unit={unit} />;
  return (
    <tr>
      <td data-label="Limit">
        <span title={groupId}>{label}</span>
      </td>
      <td data-label="Covers it?">
        {covers ? "yes" : `no: ${whyNot(group)}`}
      </td>
      <td data-label="Needs" class="number">{value(need)}</td>
      <td data-label="Room" class="number">{value(room)}</td>
      <td data-label="Used" class="number">{value(current - held)}</td>
      <td data-label="Held" class="number">{value(held)}</td>
      <td data-label="Gate" class="number">
        {headroom === null ? <span class="soft">–</span> : (
          <span
            title={headroom.mode === "percent"
              ? `${headroom.value} % of the quota`
              : `${headroom.value} times the need`}
          >
            {value(gate)}
          </span>
        )}
      </td>
      <td data-label="Quota" class="number">
        <div>
          {value(quota)}
          {isCustom ? <span class="tag">custom</span> : null}
        </div>
      </td>
      <td data-label="Fits?">
        {fits === null
          ? <span class="soft">–</span>
          : <span class={`tag ${fits ? "good" : "bad"}`}>{fits ? "fits" : "no room"}</span>}
      </td>
    </tr>
  );
}

function whyNot({ why, metadata = {} }: ExplainedGroup): string {
  if (why !== "metadata") return "no rule names the event";
  return Object.entries(metadata).map(([key, { wanted, given }]) =>
    `${key} is ${given === null ? "missing" : `"${given}"`}, it wants "${wanted}"`
  ).join("; ");
}
