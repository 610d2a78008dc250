// The keys of an app in one mode. A key itself is known to nobody but whoever made it.

import { keysPath, type ShownKey } from "./keys_actions.tsx";
import { appOf, refusedPage } from "../parts/subject.tsx";
import { ActsHead, Time } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";
import { mayChange, type PageAt } from "../parts/page_context.ts";

/** `/console/apps/{appId}/{mode}/keys` */
export const keysPage: PageAt = {
  path: "/console/apps/:appId/:mode/keys",
  async show(request) {
    const app = appOf(request);
    const answer = await request.ask.admin<ShownKey[]>("listKeys", { appId: app.appId });
    if (!answer.ok) return refusedPage(answer.error);
    const keys = answer.data.filter(({ mode }) => mode === app.mode)
      .toSorted((one, other) => Number(one.revokedAt !== null) - Number(other.revokedAt !== null));
    const changes = mayChange(request.session);
    const base = keysPath(app);
    return {
      title: "Keys",
      crumbs: [{ title: app.name, href: appPath(app) }, { title: "Keys", href: null }],
      content: (
        <>
          <div class="head">
            <h1>Keys</h1>
            {changes ? <a class="button primary" href={`${base}/new`}>Make a key</a> : null}
          </div>
          <section class="sheet">
            <h2 class="visually-hidden">The list</h2>
            {keys.length === 0
              ? (
                <p class="empty">
                  There is no key of {app.mode} mode. Your backend needs a secret one to call.
                </p>
              )
              : (
                <table class="stack">
                  <thead>
                    <tr>
                      <th>Begins with</th>
                      <th>Kind</th>
                      <th>Made</th>
                      <th>State</th>
                      {changes ? <ActsHead /> : null}
                    </tr>
                  </thead>
                  <tbody>
                    {keys.map((key) => (
                      <tr>
                        <td data-label="Begins with">
                          <code>{key.prefix}…</code>
                        </td>
                        <td data-label="Kind">{key.class}</td>
                        <td data-label="Made">
                          <Time at={key.createdAt} />
                        </td>
                        <td data-label="State">
                          {key.revokedAt === null
                            ? <span class="tag good">works</span>
                            : <span class="tag" title={key.revokedAt}>revoked</span>}
                        </td>
                        {changes
                          ? (
                            <td class="number">
                              {key.revokedAt === null
                                ? <a class="row" href={`${base}/${key.keyId}/revoke`}>Revoke</a>
                                : null}
                            </td>
                          )
                          : null}
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
          </section>
          <p class="hint">
            A secret key belongs into your backend alone. A public one may stand in a page; with an end-user
            token it reads that user's own usage.
          </p>
        </>
      ),
    };
  },
};
