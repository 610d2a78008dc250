// The stored report of a merge.

import { mergeSentences, movedRows } from "./people_actions.tsx";
import { dataOf, loadUser, PageError, userLocation } from "../parts/subject.tsx";
import { AmountText } from "../parts/format.tsx";
import type { PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import { aliasCustomer } from "../../contract/customers.ts";

/** `/console/apps/{appId}/{mode}/users/{id}/merges/{alias}` */
export const mergePage: PageRoute = {
  path: "/console/apps/:appId/:mode/users/:userId/merges/:alias",
  async show(request) {
    const subject = await loadUser(request);
    const { app, user } = subject;
    const alias = request.params["alias"] ?? "";
    const none = { code: "not_found", message: `${alias} is not an alias of ${user.userId}.` } as const;
    if (!user.aliases.includes(alias)) throw new PageError(none, "Alias not found");
    // A dry run for a merged pair returns the report of its merge.
    const pair = { from: alias, to: user.userId, dryRun: true };
    const report = await request.ask.app(app, aliasCustomer, pair).then(dataOf);
    const rows = movedRows(report);
    const { crumbs } = userLocation(subject);
    return {
      title: `Merge of ${alias}`,
      crumbs: [...crumbs, { title: `Merge of ${alias}`, href: null }],
      content: (
        <section class="card form-card">
          <h1>Merge of {alias}</h1>
          <p>
            <code>{alias}</code> is an alias of <code>{user.userId}</code>.{" "}
            {report.historyPending ? "Its history is still being moved; pages show all of it meanwhile." : ""}
          </p>
          {mergeSentences(report).map((sentence) => <p>{sentence}</p>)}
          <Table
            empty="There was nothing to move."
            isWide
            rows={rows}
            columns={[
              { head: "Moved", cell: ([what]) => what },
              { head: "Rows", kind: "number", cell: ([, count]) => <AmountText value={count} /> },
            ]}
          />
        </section>
      ),
    };
  },
};
