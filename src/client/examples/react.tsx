// The remaining quota in a React page. A server renders it with the current usage; in a browser the hook keeps it live.
// Your backend signs the token, and the page has only the public key.

import process from "node:process";
import { createClient, signEndUserToken, type Usage } from "holdfast-client";
import { useUsage } from "holdfast-client/react";
import { renderToString } from "react-dom/server";

const { HOLDFAST_URL = "http://127.0.0.1:8000", HOLDFAST_USER = "user_demo" } = process.env;
const { HOLDFAST_PUBLIC_KEY = "", HOLDFAST_IDENTITY_SECRET = "" } = process.env;

const endUserToken = () =>
  signEndUserToken({ identitySecret: HOLDFAST_IDENTITY_SECRET, userId: HOLDFAST_USER });
const client = createClient({ apiKey: HOLDFAST_PUBLIC_KEY, baseUrl: HOLDFAST_URL, endUserToken });

function ImagesLeft({ initialUsage }: { readonly initialUsage: Usage }) {
  const { usage, error, isLive } = useUsage({ client, event: "image.render", initialUsage });
  if (error !== null && usage === null) return <p role="alert">{error.message}</p>;
  return (
    <ul aria-busy={!isLive}>
      {usage?.counters.map(({ groupId, label, remaining }) => (
        <li key={groupId}>{`${label}: ${remaining} left`}</li>
      ))}
    </ul>
  );
}

console.log(renderToString(<ImagesLeft initialUsage={await client.usageMe("image.render")} />));
