// Bugs of nodes, cells and the registry, planted one at a time like those in `bugs.ts`.

import { Budget } from "../../../actors/budget.ts";
import { Directory } from "../../../actors/directory.ts";
import { Doors } from "../../../actors/doors.ts";
import { Term } from "../../../actors/term.ts";
import { ChannelLost, Hub } from "../../../src/channel/hub.ts";
import { ClusterNode } from "../../../src/cluster/node.ts";
import { firstSeq, lastSeq } from "../../../src/storage/journal/ranges.ts";
import { Writer } from "../../../src/storage/journal/writer.ts";
import { RegistryChanges } from "../../../src/tenant/registry_changes.ts";
import { Server } from "../database/server.ts";
import { only } from "../troubles.ts";
import { type PlantedBug, replace } from "./plant.ts";

/** Lets every call that another node passes on into any cell. */
function letEveryoneIn(): () => void {
  const strangers = new WeakMap<Doors, number[]>();
  const enter = replace(Doors.prototype, "tryEnter", (tryEnter) =>
    function (this: Doors, cell) {
      if (tryEnter.call(this, cell)) return true;
      if (this.isHere(cell) || new Error().stack?.includes("/http/receive.ts") !== true) return false;
      const inside = strangers.get(this) ?? [];
      strangers.set(this, [...inside, cell]);
      return true;
    });
  const leave = replace(Doors.prototype, "leave", (original) =>
    function (this: Doors, cell) {
      const inside = strangers.get(this) ?? [];
      const place = inside.indexOf(cell);
      if (place < 0) original.call(this, cell);
      else inside.splice(place, 1);
    });
  return () => {
    leave();
    enter();
  };
}

/** Loads the user of a key in any realm, and checks the realm afterwards. */
function loadByKeyAlone(): () => void {
  let server: Server | null = null;
  const seen = replace(Server.prototype, "receive", (receive) =>
    function (this: Server, ...message) {
      server = this;
      receive.apply(this, message);
    });
  const load = replace(
    Directory.prototype,
    "runByKey",
    (runByKey) =>
      async function (this: Directory, key, call) {
        const [row] = server?.tables.list("users", (each) => each.key === key) ?? [];
        if (row !== undefined) await this.actorOf(row.realm as number, row.id as string);
        return await runByKey.call(this, key, call as never);
      } as Directory["runByKey"],
  );
  return () => {
    load();
    seen();
  };
}

/** Writes replayed rows a second time later, as a node would that does not check what is written. */
function replayAgain(): () => void {
  let server: Server | null = null;
  const seen = replace(Server.prototype, "receive", (receive) =>
    function (this: Server, ...message) {
      server = this;
      receive.apply(this, message);
    });
  const twice = replace(Writer.prototype, "replay", (replay) =>
    async function (this: Writer, term) {
      const left = [...server?.tables.journal ?? []].filter(([seq]) =>
        seq > firstSeq(term) && seq <= lastSeq(term)
      );
      await replay.call(this, term);
      const lines = left.flatMap(([, payload]) => payload.split("\n"));
      // The mark of a new value, in the place of that of a new row.
      const puts = lines.map((line) => `${line[0]}=${line.slice(2)}`).join("\n");
      if (puts !== "") setTimeout(() => server?.tables.write(puts), 3_000);
    });
  return () => {
    twice();
    seen();
  };
}

/** Frees cells with changes that are still in the journal: neither the drain nor the look at the journal stops it. */
function freeBlindly(): () => void {
  const flush = replace(Term.prototype, "flush", (flush) =>
    function (this: Term) {
      const { doors } = this;
      return doors.held.every((cell) => doors.isOpen(cell)) ? flush.call(this) : Promise.resolve();
    });
  const receive = replace(
    Server.prototype,
    "receive",
    (receive) =>
      function (this: Server, session, message, onReply) {
        const isFreeing = message.kind === "query" &&
          message.text.startsWith("update cells c set term = null");
        const blind = isFreeing ? { ...message, params: [...message.params.slice(0, 4), 0, 0] } : message;
        receive.call(this, session, blind, onReply);
      },
  );
  return () => {
    receive();
    flush();
  };
}

/** Drains behind the replays of the same node, as on one session. */
function drainBehindReplays(): () => void {
  const replaying = new WeakMap<Writer, Set<Promise<void>>>();
  const replays = replace(Writer.prototype, "replay", (replay) =>
    function (this: Writer, term) {
      const running = replaying.get(this) ?? new Set();
      replaying.set(this, running);
      const done = replay.call(this, term);
      running.add(done);
      done.catch(() => {}).finally(() => running.delete(done));
      return done;
    });
  const drains = replace(Writer.prototype, "drain", (drain) =>
    async function (this: Writer, ...batches) {
      const running = replaying.get(this);
      if (running !== undefined && running.size > 0) await Promise.allSettled(running);
      await drain.apply(this, batches);
    });
  return () => {
    drains();
    replays();
  };
}

/** Takes a lost channel, or a failed connect, for the end of the process. */
function believeTooSoon(): () => void {
  const probe = replace(Hub.prototype, "probe", () => () => Promise.resolve("gone" as const));
  const lost = replace(ClusterNode.prototype, "onLost", (onLost) =>
    function (this: ClusterNode, term) {
      onLost.call(this, term, true);
    });
  return () => {
    lost();
    probe();
  };
}

export const CLUSTER_BUGS: readonly PlantedBug[] = [
  {
    name: "a cell is taken without the replay",
    plant: () => replace(Writer.prototype, "replay", () => () => Promise.resolve()),
  },
  {
    name: "cells are freed without the drain and without a look at the journal",
    plant: freeBlindly,
  },
  { name: "a term is replayed once more after its cells have changed hands", plant: replayAgain },
  { name: "an owner runs what it is passed without a look at its cell", plant: letEveryoneIn },
  {
    name: "a version of the registry is confirmed before it is in force",
    plant: () =>
      replace(Writer.prototype, "beat", (beat) =>
        function (this: Writer, state) {
          return beat.call(this, { ...state, registryVersion: Number.MAX_SAFE_INTEGER });
        }),
  },
  {
    name: "caps are not loaded with the cell",
    plant: () => replace(Budget.prototype, "admit", () => () => {}),
  },
  {
    name: "a beat does not read the version of the registry",
    plant: () => replace(RegistryChanges.prototype, "reach", () => () => Promise.resolve()),
  },
  {
    name: "calls that wait at a door are forgotten at a hand-over",
    plant: () =>
      replace(Doors.prototype, "enter", (enter) =>
        function (this: Doors, cell) {
          const entered = enter.call(this, cell);
          if (typeof entered === "boolean") return entered;
          return entered.then((isInside) => isInside ? true : new Promise<boolean>(() => {}));
        }),
  },
  {
    name: "calls that wait at a door run here although the cell has gone",
    plant: () =>
      replace(Doors.prototype, "enter", (enter) =>
        function (this: Doors, cell) {
          const entered = enter.call(this, cell);
          return typeof entered === "boolean" ? entered : entered.then(() => true);
        }),
  },
  {
    name: "a call with a lost answer is sent again",
    plant: () =>
      replace(Hub.prototype, "call", (call) =>
        function (this: Hub, term, passed) {
          return call.call(this, term, passed).catch((error) => {
            if (!(error instanceof ChannelLost)) throw error;
            return { head: ["not run", 0], body: "" };
          });
        }),
  },
  {
    name: "a node's cells are served while it may still answer",
    // It shows where a node lost its sessions and its channels at once, hears nothing of it, and is asked what it knows.
    troubles: only({ unheard: 1 }),
    plant: believeTooSoon,
  },
  { name: "a user is loaded by key alone", plant: loadByKeyAlone },
  {
    name: "a sealed door is opened by a hand-over that gives up",
    // It shows where a process stops while its hand-over waits for a slow call.
    troubles: only({ leave: 3, stop: 1 }),
    plant: () =>
      replace(Doors.prototype, "seal", () =>
        function (this: Doors) {
          void this.shut(this.held);
        }),
  },
  {
    name: "drains wait for the replays of the same node",
    nodes: 3,
    plant: drainBehindReplays,
  },
  {
    name: "a process that sends heartbeats without proof keeps its cells",
    troubles: only({ stuck: 1 }),
    plant: () => replace(Writer.prototype, "lookAtLife", () => () => {}),
  },
  {
    name: "a failed replay counts as done",
    plant: () =>
      replace(Writer.prototype, "replay", (replay) =>
        function (this: Writer, term) {
          return replay.call(this, term).catch(() => {});
        }),
  },
  {
    name: "a cell is served while its dead owner is still being replayed",
    plant: () =>
      replace(Writer.prototype, "replay", (replay) =>
        function (this: Writer, term) {
          setTimeout(() => void replay.call(this, term).catch(() => {}), 1_500);
          return Promise.resolve();
        }),
  },
];
