// Features in force: all of a user, or one.

import type { Directory } from "../../actors/directory.ts";
import type { FeaturesAnswer } from "../../src/domain/plans/features.ts";
import * as contract from "../contract/features.ts";
import type { Handled } from "../http/answer.ts";
import { requireSameUser } from "../http/auth.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint, EndpointRequest } from "../http/endpoint_types.ts";
import { invalidMember } from "../http/errors.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";

interface FeaturesWorld extends TurnWorld {
  readonly term: TurnWorld["term"] & { readonly directory: Pick<Directory, "isSameUser"> };
}

const endpoint = endpointsOn<FeaturesWorld>();

export const FEATURES: readonly Endpoint<FeaturesWorld>[] = [
  endpoint(
    contract.listFeatures,
    (request) => read(request, null, ({ userId, features }) => ({ userId, features })),
  ),
  endpoint(contract.getFeature, (request) => {
    const { key } = request.input;
    return read(request, key, ({ userId, features }) => {
      return { userId, key, ...(Object.hasOwn(features, key) ? features[key] : undefined) ?? MISSING };
    });
  }),
];

/** What a user has of a key that none of its plans and no default has. */
const MISSING = { value: null, from: "default", of: null } as const;

/** Reads the features of the user that the request names, or acts for. */
async function read<Data>(
  request: EndpointRequest<FeaturesWorld, { readonly userId?: string | undefined }>,
  key: string | null,
  show: (answer: FeaturesAnswer) => NoInfer<Data>,
): Promise<Handled<Data>> {
  const { world, caller, input, endUser } = request;
  const userId = input.userId ?? endUser?.userId;
  if (userId === undefined) throw invalidMember("userId", "is required");
  await requireSameUser(world.term.directory, caller.realm, endUser, userId);
  return await runTurn(request, { userId }, { name: "features", input: { key } }, show);
}
