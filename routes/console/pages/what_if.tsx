// What if: tries a catalog on the recorded events of a span. The text comes from the editor of the catalog. Nothing is
// changed, so the form may be sent as often as one likes.

import type { WhatIf } from "../../../src/operations/what_if/what_if.ts";
import type { FieldFault, Refusal } from "../../../src/domain/values/refusal.ts";
import { getCatalog } from "../../contract/catalogs.ts";
import { whatIf } from "../../contract/what_if.ts";
import { groupLabels, type ShownCatalog } from "../parts/catalog.ts";
import {
  type Fault,
  faultsOf,
  type Field,
  Fields,
  FormFaults,
  FormKeys,
  type Values,
  valuesOf,
} from "../parts/form.tsx";
import { appPath, crumbsOf } from "../parts/page.tsx";
import {
  type ActionRoute,
  mayChange,
  type PageContent,
  type PageRequest,
  type PageRoute,
} from "../parts/page_context.ts";
import { appOf, dataOf } from "../parts/subject.tsx";
import { type Column, Table } from "../parts/table.tsx";

const PATH = "/console/apps/:appId/:mode/catalog/what-if";
const TITLE = "What if";
const DAYS_DEFAULT = 30;
const DAY_MS = 86_400_000;

const SPAN: readonly Field[] = [
  { name: "from", label: "From", kind: "text", isRequired: true, hint: "A date or a time in UTC" },
  { name: "to", label: "To", kind: "text", isRequired: true, hint: "Exclusive" },
];

/** `/console/apps/{appId}/{mode}/catalog/what-if` */
export const whatIfPage: PageRoute = {
  path: PATH,
  async show(request) {
    const { appId, mode } = appOf(request);
    const catalog = await request.ask.admin(getCatalog, { appId, mode }).then(dataOf);
    const { version: _, testOnly: __, ...document } = catalog;
    return show(request, { text: JSON.stringify(document, null, 2), values: lastDays(request) });
  },
};

/** Its form. Sent by the editor it has no span yet, and nothing is decided. */
export const whatIfAction: ActionRoute = {
  path: PATH,
  async run(request) {
    const { appId, mode } = appOf(request);
    const text = (request.form.get("catalog") ?? "").replaceAll("\r\n", "\n");
    if (!request.form.has("from")) return show(request, { text, values: lastDays(request) });
    const values = valuesOf(SPAN, request.form);
    const fail = (faults: readonly Fault[]) => show(request, { text, values, faults });
    let catalog: unknown;
    try {
      catalog = JSON.parse(text);
    } catch (error) {
      return fail([{ field: null, message: `Invalid JSON: ${(error as Error).message}` }]);
    }
    // The schema of the call checks it.
    const input = {
      appId,
      mode,
      from: values["from"] ?? "",
      to: values["to"] ?? "",
      catalog: catalog as Catalog,
    };
    const answer = await request.ask.lastLine<typeof whatIf, WhatIf>(whatIf, input);
    if (!answer.ok) return fail(faultsIn(answer.error));
    // The call has checked it.
    const labels = groupLabels(catalog as Pick<ShownCatalog, "plans">);
    return show(request, { text, values, tried: { result: answer.data, labels } });
  },
};

/** Errors of the span at their fields; those of the catalog with their places in it. */
function faultsIn(refusal: Refusal): readonly Fault[] {
  const ofFields = faultsOf(refusal, SPAN);
  if (ofFields.some(({ field }) => field !== null) || !Array.isArray(refusal.details)) return ofFields;
  const named = refusal.details as readonly FieldFault[];
  return named.map(({ path, message }) => ({ field: null, message: `${path}: ${message}` }));
}

type Catalog = Readonly<Record<string, unknown>>;

/** The last days of the app's clock. */
function lastDays({ ask, app }: PageRequest): Values {
  const realm = app === null ? undefined : ask.serving.registry.apps.get(app.appId)?.realms[app.mode];
  const today = Math.floor((realm?.now() ?? 0) / DAY_MS);
  const dayText = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10);
  return { from: dayText(today + 1 - DAYS_DEFAULT), to: dayText(today + 1) };
}

interface Shown {
  readonly text: string;
  readonly values: Values;
  readonly faults?: readonly Fault[];
  readonly tried?: Tried;
}

/** What a catalog would have refused. */
interface Tried {
  readonly result: WhatIf;
  /** The labels of its limit groups. */
  readonly labels: ReadonlyMap<string, string>;
}

function show(request: PageRequest, { text, values, faults = [], tried }: Shown): PageContent {
  const app = appOf(request);
  const catalogPath = `${appPath(app)}/catalog`;
  return {
    title: TITLE,
    status: faults.length > 0 ? 400 : 200,
    crumbs: crumbsOf(app, { title: "Catalog", href: catalogPath }, TITLE),
    content: (
      <>
        <h1>{TITLE}</h1>
        <p class="soft">
          Which recorded calls would this catalog refuse? Nothing is changed. A long span takes up to a
          minute.
        </p>
        {tried === undefined ? null : <Result tried={tried} />}
        <FormFaults faults={faults} />
        {mayChange(request.session)
          ? <Form {...{ request, text, values, faults, catalogPath }} />
          : <p class="empty">Admins try catalogs here.</p>}
      </>
    ),
  };
}

function Form({ request, text, values, faults, catalogPath }: {
  request: PageRequest;
  text: string;
  values: Values;
  faults: readonly Fault[];
  catalogPath: string;
}) {
  return (
    <form method="post" action={request.path} class="editor">
      <FormKeys session={request.session} />
      <section class="card">
        <div class="grid">
          <Fields fields={SPAN} values={values} faults={faults} />
        </div>
        <label for="catalog">Catalog to try, as JSON</label>
        <textarea id="catalog" name="catalog" class="code" wrap="off" rows={20} spellcheck={false}>
          {`\n${text}`}
        </textarea>
        <div class="buttons">
          <button type="submit" class="primary">Try</button>
          <a class="button" href={catalogPath}>Back to the catalog</a>
        </div>
      </section>
    </form>
  );
}

type RefusedOfDay = WhatIf["refused"][number];

const columnsOf = (labels: ReadonlyMap<string, string>): readonly Column<RefusedOfDay>[] => [
  { head: "Day (UTC)", kind: "head", cell: ({ day }) => day },
  {
    head: "Limit",
    cell: ({ groupId }) =>
      groupId === null ? "no limit" : <span title={groupId}>{labels.get(groupId) ?? groupId}</span>,
  },
  { head: "Refused calls", kind: "number", cell: ({ calls }) => calls.toLocaleString("en") },
  { head: "Users", kind: "number", cell: ({ users }) => users.toLocaleString("en") },
];

function Result({ tried: { result: { events, users, refused }, labels } }: { tried: Tried }) {
  const of = `${events.toLocaleString("en")} events of ${users.toLocaleString("en")} users`;
  return (
    <section class="card" id="result">
      <h2>{refused.length === 0 ? "No call would be refused" : "Calls that would be refused"}</h2>
      <p class="soft">Of {of}.</p>
      {refused.length === 0 ? null : <Table columns={columnsOf(labels)} rows={refused} />}
    </section>
  );
}
