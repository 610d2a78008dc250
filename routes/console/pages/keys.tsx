// The API keys of an app in one mode. A key is shown only to the person who creates it.

import { isValid, keysPath, type ShownKey } from "./keys_actions.tsx";
import { appOf, dataOf } from "../parts/subject.tsx";
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
    const all = await request.ask.admin(listKeys, { appId: app.appId }).then(dataOf);
    const now = request.ask.serving.clock.now();
    const keys = all.filter(({ mode }) => mode === app.mode)
      .toSorted((one, other) => Number(isValid(other, now)) - Number(isValid(one, now)));
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
              : <Keys base={base} keys={keys} mayEdit={mayEdit} now={now} />}
          </section>
          {mayEdit
            ? (
              <section class="card">
                <h2>Identity secret</h2>
                <p>
                  It signs the end-user tokens of this app in both modes. It was shown once, when the app was
                  created. <a href={`${base}/identity-secret`}>Rotate the identity secret</a>
                </p>
              </section>
            )
            : null}
          <p class="hint">
            Use secret keys only on your server. Public keys may be used in a browser; with an end-user token
            they read that user's own usage.
          </p>
        </>
      ),
    };
  },
};

function Status({ shown, now }: { shown: ShownKey; now: number }) {
  const { revokedAt, validUntil } = shown;
  if (revokedAt !== null) return <span class="tag" title={revokedAt}>revoked</span>;
  if (validUntil === null) return <span class="tag good">active</span>;
  if (!isValid(shown, now)) return <span class="tag" title={validUntil}>expired</span>;
  return (
    <span class="tag warn">
      valid until <Time at={validUntil} />
    </span>
  );
}

function Keys(
  { base, keys, mayEdit, now }: {
    base: string;
    keys: readonly ShownKey[];
    mayEdit: boolean;
    /** Real time. */
    now: number;
  },
) {
  return (
    <Table
      rows={keys}
      columns={[
        { head: "Key", cell: ({ prefix }) => <code>{prefix}…</code> },
        { head: "Name", cell: ({ name }) => name ?? <span class="soft">none</span> },
        { head: "Kind", cell: (key) => key.class },
        {
          head: "Created",
          cell: ({ createdAt, createdBy }) => (
            <>
              <Time at={createdAt} />
              {createdBy === null ? null : <span class="soft">{` by ${createdBy}`}</span>}
            </>
          ),
        },
        {
          head: "Last used",
          cell: ({ lastUsedAt }) =>
            lastUsedAt === null ? <span class="soft">never</span> : <Time at={lastUsedAt} />,
        },
        { head: "Status", cell: (key) => <Status shown={key} now={now} /> },
        mayEdit
          ? {
            head: "Actions",
            hidesHead: true,
            kind: "number",
            cell: (key) =>
              isValid(key, now)
                ? (
                  <>
                    <a class="row" href={`${base}/${key.keyId}/roll`}>Roll</a>{" "}
                    <a href={`${base}/${key.keyId}/revoke`}>Revoke</a>
                  </>
                )
                : null,
          }
          : null,
      ]}
    />
  );
}
