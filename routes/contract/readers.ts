// Readers: roles of the database for tools that read it, with the admin token.

import { z } from "zod";
import { storeName } from "./admin.ts";
import { defineCall } from "./definition.ts";

const name = z.string().describe("The name of the role");

/** `GET /admin/v1/readers` */
export const listReaders = defineCall({
  id: "listReaders",
  method: "GET",
  path: "/admin/v1/readers",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "List readers",
  description: "Roles of the database that may select the views of the schema holdfast and nothing else.",
  answer: z.array(z.strictObject({ name })),
  errors: [],
});

/** `POST /admin/v1/readers` */
export const createReader = defineCall({
  id: "createReader",
  method: "POST",
  path: "/admin/v1/readers",
  access: "admin",
  input: z.object({
    store: storeName.optional().describe(
      "With HOLDFAST_DATABASES: the database that it reads; required then",
    ),
  }),
  inQuery: ["store"],
  hasNoBody: true,
  tag: "Administration",
  summary: "Create a reader",
  description:
    "A role for a tool that reads the database, with at most 5 connections and 60 s for a statement. It " +
    "reads all apps and modes: no prompts, no people and no metadata, but the ids of users. The embedded " +
    "store has no readers.",
  answer: z.strictObject({
    name,
    url: z.string().describe("The address to connect to, with the password; shown only once"),
  }),
  answersToken: true,
  errors: ["not_implemented"],
});

/** `DELETE /admin/v1/readers/{readerName}` */
export const removeReader = defineCall({
  id: "removeReader",
  method: "DELETE",
  path: "/admin/v1/readers/:readerName",
  access: "admin",
  input: z.object({ readerName: name }),
  tag: "Administration",
  summary: "Remove a reader",
  description: "Ends its connections.",
  answer: z.strictObject({ name }),
  errors: ["not_found"],
});
