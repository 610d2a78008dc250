// Bugs of recording and delivering messages, planted one at a time as those in `bugs.ts` are.

import { findMessages } from "../../../src/storage/stores/message_store.ts";
import { FIRST_TABLE, TABLES } from "../../../src/storage/rows/tables.ts";
import { Sender } from "../../../src/webhooks/sender.ts";
import { SimDatabase } from "../database/connection.ts";
import { Server } from "../database/server.ts";
import { Receiver } from "../receiver.ts";
import { type PlantedBug, replace } from "./plant.ts";

/** Plants a bug in what a process asks of the database, which also sees the server itself. */
function betweenDatabase(
  instead: (
    text: string,
    params: readonly unknown[],
    query: SimDatabase["query"],
    server: Server | null,
  ) => Promise<unknown>,
): () => void {
  let server: Server | null = null;
  const seen = replace(Server.prototype, "receive", (receive) =>
    function (this: Server, ...message) {
      server = this;
      receive.apply(this, message);
    });
  const ask = replace(
    SimDatabase.prototype,
    "query",
    (query) =>
      function (this: SimDatabase, text: string, params: readonly unknown[] = []) {
        return instead(text, params, query.bind(this) as SimDatabase["query"], server);
      } as SimDatabase["query"],
  );
  return () => {
    ask();
    seen();
  };
}

const MESSAGES = String.fromCharCode(
  FIRST_TABLE + TABLES.findIndex(({ name }) => name === "webhook_messages"),
);

/** Writes messages by themselves, just before the batch that they belong to. */
function recordApart(): () => void {
  return betweenDatabase((text, params, query, server) => {
    if (!text.startsWith("insert into journal")) return query(text, params as never);
    const lines = String(params[1]).split("\n");
    const isMessage = (line: string) => line.startsWith(MESSAGES);
    const messages = lines.filter(isMessage);
    if (messages.length > 0) server?.tables.write(messages.join("\n"));
    const others = lines.filter((line) => !isMessage(line));
    return query(text, [params[0], others.join("\n"), ...params.slice(2)] as never);
  });
}

/** Takes every pending message of a webhook for the first one of its lane. */
function overtake(): () => void {
  return betweenDatabase((text, params, query, server) => {
    if (!text.trimStart().startsWith("with lanes as")) return query(text, params as never);
    const pending = server?.tables.list("webhook_messages", (row) =>
      row.webhook_id === params[0] && (row.status ?? "pending") === "pending") ?? [];
    return findMessages(
      { query },
      pending.map(({ id }) =>
        id as string
      ),
    );
  });
}

export const WEBHOOK_BUGS: readonly PlantedBug[] = [
  { name: "a message is recorded apart from its batch", plant: recordApart },
  { name: "a message passes an earlier one of its user", plant: overtake },
  {
    name: "a message counts as delivered before it is answered",
    plant: () =>
      replace(Receiver.prototype, "transportOf", (transportOf) =>
        function (this: Receiver, owner) {
          const transport = transportOf.call(this, owner);
          return {
            ...transport,
            attempt(attempt, signal) {
              transport.attempt(attempt, signal).catch(() => {});
              return Promise.resolve({ status: 200, fault: null });
            },
          };
        }),
  },
  {
    name: "what is pending is forgotten as a cell changes hands",
    members: 3,
    plant() {
      const known = new WeakSet<Sender>();
      return replace(Sender.prototype, "taken", (taken) =>
        function (this: Sender, cells) {
          if (known.has(this)) return;
          known.add(this);
          taken.call(this, cells);
        });
    },
  },
];
