// Answers of the admin lists of users, their holds, and of ids that are looked up, as schemas. beyond.md, section 8.

import { z } from "zod";
import { amounts, time } from "./records.ts";

export const usersAnswer = z.strictObject({
  users: z.array(z.strictObject({
    userId: z.string(),
    aliasOf: z.string().nullable().describe("The canonical id of an alias; null for a user of their own"),
    deletionPending: z.boolean().describe("An erasure was asked for and is not done yet"),
  })).describe("By id, in the order of code points"),
  nextCursor: z.string().nullable(),
});

export const holdsAnswer = z.strictObject({
  holds: z.array(z.strictObject({
    reservationId: z.string(),
    event: z.string(),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    amounts: amounts.describe("What is held of limit groups, and of credit balances"),
    createdAt: time,
    expiresAt: time,
  })).describe("Newest first, at most 200"),
  hasMore: z.boolean(),
});

export const lookupAnswer = z.strictObject({
  found: z.array(z.strictObject({
    kind: z.enum(["event", "reservation", "balance", "subscription", "merge"]),
    id: z.string(),
    userId: z.string().describe("The canonical id of the user that it belongs to"),
    alias: z.string().nullable().describe("Of a merge: the id that became an alias; else null"),
    status: z.enum(["held", "committed", "released", "expired"]).nullable()
      .describe("Of a reservation: what became of it; else null"),
  })).describe(
    "Empty for an id that stands for nothing; several for a reference that several have, at most 20",
  ),
});
