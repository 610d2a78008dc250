// Bugs of recording and delivering messages, planted one at a time like those in `bugs.ts`.

import type { Param } from "../../../src/storage/database.ts";
import { findMessages } from "../../../src/storage/stores/message_store.ts";
import { FIRST_TABLE, TABLES } from "../../../src/storage/rows/tables.ts";
import { Sender } from "../../../src/webhooks/sender.ts";
import type { Fields } from "../../support/memory_store.ts";
import { SimDatabase } from "../database/connection.ts";
import { Server } from "../database/server.ts";
import { messagesIn } from "../database/statements_webhooks.ts";
import { Receiver } from "../receiver.ts";
import { type PlantedBug, replace } from "./plant.ts";

const MESSAGES = String.fromCharCode(
  FIRST_TABLE + TABLES.findIndex(({ name }) => name === "webhook_messages"),
);

/** Leaves messages out of batches before they reach the journal; the drain has them still. */
function recordApart(): () => void {
  return replace(Server.prototype, "receive", (receive) =>
    function (this: Server, session, message, reply) {
      if (message.kind === "query" && message.text.startsWith("insert into journal")) {
        const [seq, payload, ...more] = message.params;
        const kept = String(payload).split("\n").filter((line) => !line.startsWith(MESSAGES)).join("\n");
        message = { ...message, params: [seq as number, kept, ...more] };
      }
      receive.call(this, session, message, reply);
    });
}

/** Takes other pending messages of a webhook for the first ones of their lanes. */
function takeForHeads(choose: (pending: readonly Fields[]) => readonly Fields[]): () => void {
  let server: Server | null = null;
  const seen = replace(Server.prototype, "receive", (receive) =>
    function (this: Server, ...message) {
      server = this;
      receive.apply(this, message);
    });
  const heads = replace(
    SimDatabase.prototype,
    "query",
    (query) =>
      function (this: SimDatabase, text: string, params: readonly Param[] = []) {
        if (!text.trimStart().startsWith("with lanes as")) return query.call(this, text, params);
        const pending = server === null ? [] : messagesIn(server.tables)
          .filter(({ webhook_id: id, status }) => id === params[0] && status === "pending");
        return findMessages(this, choose(pending).map(({ id }) => id as string));
      } as SimDatabase["query"],
  );
  return () => {
    heads();
    seen();
  };
}

/** The first message of each id, without regard to aliases. */
function firstOfEachId(pending: readonly Fields[]): readonly Fields[] {
  return pending.filter(({ user_key: key }, place) =>
    pending.findIndex(({ user_key: other }) => other === key) === place
  );
}

export const WEBHOOK_BUGS: readonly PlantedBug[] = [
  { name: "messages are no part of the batch in the journal", plant: recordApart },
  {
    name: "a message passes an earlier one of its user",
    plant: () => takeForHeads((pending) => pending),
  },
  { name: "the ids of a merged user go their own ways", plant: () => takeForHeads(firstOfEachId) },
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
    nodes: 3,
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
