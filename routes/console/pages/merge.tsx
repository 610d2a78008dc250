// What a merge moved: the report that is kept of it.

import { mergeSentences, movedRows, type ShownMerge } from "./people_actions.tsx";
import { aboutUser, placeOfUser, refusedPage } from "../parts/subject.tsx";
import { AmountText } from "../parts/format.tsx";
import type { PageAt } from "../parts/page_context.ts";

/** `/console/apps/{appId}/{mode}/users/{id}/merges/{alias}` */
export const mergePage: PageAt = {
  path: "/console/apps/:appId/:mode/users/:userId/merges/:alias",
  async show(request) {
    const subject = await aboutUser(request);
    if (!("user" in subject)) return subject;
    const { app, user } = subject;
    const alias = request.params["alias"] ?? "";
    const none = { code: "not_found", message: `${alias} is no alias of ${user.userId}.` } as const;
    if (!user.aliases.includes(alias)) return refusedPage(none, "No such alias");
    // A dry run of a pair that is merged answers the report of its merge.
    const pair = { from: alias, to: user.userId, dryRun: true };
    const kept = await request.ask.app<ShownMerge>(app, "aliasCustomer", pair);
    if (!kept.ok) return refusedPage(kept.error);
    const report = kept.data;
    const rows = movedRows(report);
    const { crumbs } = placeOfUser(request, subject);
    return {
      title: `Merge of ${alias}`,
      crumbs: [...crumbs, { title: `Merge of ${alias}`, href: null }],
      content: (
        <section class="sheet act">
          <h1>Merge of {alias}</h1>
          <p>
            <code>{alias}</code> is an alias of <code>{user.userId}</code>.{" "}
            {report.historyPending ? "Its history is still moving; pages show all of it meanwhile." : ""}
          </p>
          {mergeSentences(report).map((sentence) => <p>{sentence}</p>)}
          {rows.length === 0 ? <p class="empty">The id had nothing that could move.</p> : (
            <table>
              <thead>
                <tr>
                  <th>Moved</th>
                  <th class="number">Rows</th>
                </tr>
              </thead>
              <tbody>
                {rows.map(([what, count]) => (
                  <tr>
                    <td>{what}</td>
                    <td class="number">
                      <AmountText value={count} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </section>
      ),
    };
  },
};
