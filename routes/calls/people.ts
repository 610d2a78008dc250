// Analytics people: capture, identify, and the alias of two people.

import type { Directory } from "../../actors/directory.ts";
import { answerOf, InsideKeeper, type KeepingTerm, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import { type EndUser, requireSameUser } from "../http/auth.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import type { DataOf } from "../contract/definition.ts";
import * as contract from "../contract/people.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { capture } from "../../src/people/capture.ts";
import { identify } from "../../src/people/identify.ts";
import { PEOPLE_LIMITS } from "../../src/process/limits.ts";
import { aliasPeople } from "../../src/people/link.ts";
import type { LinkMaker } from "../../src/storage/stores/person_link_store.ts";
import type { Caller } from "../../src/tenant/registry.ts";

type PeopleWorld =
  & Parameters<typeof capture>[0]
  & Parameters<typeof identify>[0]
  & Parameters<typeof aliasPeople>[0]
  & { readonly term: KeepingTerm & { readonly directory: Pick<Directory, "isSameUser"> } };

const endpoint = endpointsOn<PeopleWorld>();

export const PEOPLE: readonly Endpoint<PeopleWorld>[] = [
  endpoint(contract.capture, async ({ world, caller, input, idempotent }) => {
    const now = caller.realm.now();
    const at = input.timestamp ?? now;
    if (at > now + PEOPLE_LIMITS.timestampAheadMs) {
      throw invalidMember("timestamp", "must be at most 24 hours ahead");
    }
    const { distinctId = null, event } = input;
    const captured = { distinctId, event, properties: input.properties ?? {}, at };
    if (idempotent === null) {
      await capture(world, caller.realm, captured, null);
      return success({ accepted: true });
    }
    const keeper = new InsideKeeper<DataOf<typeof contract.capture>>(world.term, idempotent);
    await capture(world, caller.realm, captured, (session) => keeper.keep(session, { accepted: true }));
    return keeper.written ?? success({ accepted: true });
  }),
  endpoint(contract.identify, async ({ world, caller, endUser, input }) => {
    const anonymousId = input.mergeAnonymousId ?? null;
    if (anonymousId !== null && input.consentGiven !== true) requireConsent("mergeAnonymousId");
    if (anonymousId !== null) {
      await requireSameUser(world.term.directory, caller.realm, endUser, input.distinctId);
    }
    const result = await identify(world, caller.realm, {
      distinctId: input.distinctId,
      properties: input.properties ?? {},
      propertiesOnce: input.propertiesOnce ?? {},
      anonymousId,
      by: makerOf(caller, endUser),
    });
    return answerOf(result, (answer) => answer);
  }),
  endpoint(contract.aliasPerson, async ({ world, caller, input }) => {
    const { distinctId, alias } = input;
    if (distinctId === alias) throw new Refused("alias_cycle", "distinctId and alias are the same id");
    const needsConsent = distinctId.startsWith("anon_") || alias.startsWith("anon_");
    if (needsConsent && input.consentGiven !== true) requireConsent("alias");
    return success({ personId: await aliasPeople(world, caller.realm, distinctId, alias) });
  }),
];

/** The right by which a caller links two ids. */
function makerOf({ key }: Caller, endUser: EndUser | null): LinkMaker {
  if (key.class === "secret") return "secret_key";
  return endUser === null ? "public_key" : "end_user_token";
}

function requireConsent(member: string): never {
  throw new Refused(
    "consent_required",
    `${member}: an anonymous session is linked only with consentGiven: true`,
  );
}
