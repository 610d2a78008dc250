// Features in force: what a user may use at all, beside how much.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, eventName } from "./fields.ts";
import { feature, features } from "./records.ts";

const ofUser = { userId: endUserId.optional() };

/** `GET /v1/features` */
export const listFeatures = defineCall({
  id: "listFeatures",
  method: "GET",
  path: "/v1/features",
  access: "end_user",
  takesUserKey: true,
  input: z.object(ofUser),
  tag: "Usage",
  summary: "List a user's features",
  description:
    "The features in force, by key: those of the user's own subscription, then those of the nearest user above that " +
    "has the key, then the defaults of the catalog. A key that none of them has is left out. With a public key or a " +
    "user's key, userId may be left out.",
  answer: z.strictObject({ userId: z.string().describe("The canonical id"), features }),
  errors: [],
});

/** `GET /v1/features/{key}` */
export const getFeature = defineCall({
  id: "getFeature",
  method: "GET",
  path: "/v1/features/:key",
  access: "end_user",
  takesUserKey: true,
  input: z.object({ key: eventName, ...ofUser }),
  tag: "Usage",
  summary: "Get one feature of a user",
  description:
    "Like listFeatures, for one key. A user without a value has the value null. A key that no plan and no default of " +
    "the catalog names is not_found.",
  answer: z.strictObject({
    userId: z.string().describe("The canonical id"),
    key: z.string(),
    ...feature.shape,
    value: feature.shape.value.nullable().describe(
      "null if neither plans nor defaults give the user a value",
    ),
  }),
  errors: ["not_found"],
});
