// The API keys of an app in one mode. A key is shown only to the person who creates it.

import { keysPath, type ShownKey } from "./keys_actions.tsx";
import { appOf, errorPage } from "../parts/subject.tsx";
import { Time } from "../parts/format.tsx";
import { crumbsOf } from "../parts/page.tsx";
import { mayChange, type PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import { listKeys } from "../../contract/admin.ts";

/** `/console/apps/{appId}/{mode}/keys` */
export const keysPage: PageRoute = {
  path: "/console/apps/:appId/:mode/keys",
  async show(request) {
    const app = appOf(request);
    const answer = await request.ask.admin(listKeys, { appId: app.appId });
    if (!answer.ok) return errorPage(answer.error);
    const keys = answer.data.filter(({ mode }) => mode === app.mode)
      .toSorted((one, other) => Number(one.revokedAt !== null) - Number(other.revokedAt !== null));
    const mayEdit = mayChange(request.session);
    const base = keysPath(app);
    return {
      title: "API keys",
      crumbs: crumbsOf(app, "API keys"),
      content: (
        <>
          <div class="head">
            <h1>API keys</h1>
            {mayEdit ? <a class="button primary" href={`${base}/new`}>Create API key</a> : null}
          </div>
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {keys.length === 0
              ? (
                <p class="empty">
                  No API keys in {app.mode} mode yet. Your server needs a secret key to call the API.
                </p>
              )
              : <Keys base={base} keys={keys} mayEdit={mayEdit} />}
          </section>
          <p class="hint">
            Use secret keys only on your server. Public keys may be used in a browser; with an end-user token
            they read that user's own usage.
          </p>
        </>
      ),
    };
  },
};

function Keys({ base, keys, mayEdit }: { base: string; keys: readonly ShownKey[]; mayEdit: boolean }) {
  return (
    <Table
      rows={keys}
      columns={[
        { head: "Key", cell: ({ prefix }) => <code>{prefix}…</code> },
        { head: "Kind", cell: (key) => key.class },
        { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
        {
          head: "Status",
          cell: ({ revokedAt }) =>
            revokedAt === null
              ? <span class="tag good">active</span>
              : <span class="tag" title={revokedAt}>revoked</span>,
        },
        mayEdit
          ? {
            head: "Actions",
            hidesHead: true,
            kind: "number",
            cell: ({ keyId, revokedAt }) =>
              revokedAt === null ? <a class="row" href={`${base}/${keyId}/revoke`}>Revoke</a> : null,
          }
          : null,
      ]}
    />
  );
}
