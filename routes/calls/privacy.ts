// Consent, and the erasure of a person.

import type { Term } from "../../actors/term.ts";
import { Refused } from "../http/errors.ts";
import { type Handled, InsideKeeper, keepFirst, type KeepingTerm, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint, EndpointRequest } from "../http/endpoint_types.ts";
import * as contract from "../contract/privacy.ts";
import type { CheckedOf, DataOf } from "../contract/definition.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";
import type { Features } from "../../src/process/features.ts";
import { changeConsent, isOptedOut } from "../../src/people/consents.ts";
import { findErasure, requestErasure } from "../../src/people/erasure.ts";
import type { Session } from "../../src/storage/database.ts";

type PrivacyWorld =
  & FeatureWorld
  & Parameters<typeof changeConsent>[0]
  & Parameters<typeof isOptedOut>[0]
  & Parameters<typeof requestErasure>[0]
  & Parameters<typeof findErasure>[0]
  & { readonly term: Pick<Term, "keepAnswer"> & KeepingTerm };

const endpoint = endpointsOn<PrivacyWorld>();

/** Returns the handler of opt-out or of opt-in. */
function consent(action: "opt_out" | "opt_in") {
  return async (
    { world, caller, input, idempotent }: EndpointRequest<PrivacyWorld, CheckedOf<typeof contract.optOut>>,
  ): Promise<Handled<DataOf<typeof contract.optOut>>> => {
    const scope = input.scope ?? "all";
    const coversAnalytics = scope === "analytics" || scope === "all";
    if (action === "opt_out" && coversAnalytics) requirePrivacySecret(world);
    const userKey = await changeConsent(world, caller.realm, input.distinctId, action, scope);
    // Kept here and not by the dispatch, so that it is erased with the user.
    return idempotent === null ? success({}) : await keepFirst(world.term, idempotent, success({}), userKey);
  };
}

export const PRIVACY: readonly Endpoint<PrivacyWorld>[] = [
  endpoint(contract.optOut, consent("opt_out")),
  endpoint(contract.optIn, consent("opt_in")),
  endpoint(contract.isOptedOut, async ({ world, caller, input }) => {
    const { distinctId, scope = "analytics" } = input;
    return success({ optedOut: await isOptedOut(world, caller.realm.realm, distinctId, scope) });
  }),
  endpoint(contract.deletePerson, async ({ world, caller, input, idempotent }) => {
    requirePrivacySecret(world);
    const { realm } = caller;
    const { distinctId } = input;
    if (idempotent === null) return success({ jobId: await requestErasure(world, realm, distinctId, null) });
    const keeper = new InsideKeeper<DataOf<typeof contract.deletePerson>>(world.term, idempotent);
    const keep = (session: Session, id: string) => keeper.keep(session, { jobId: id });
    const jobId = await requestErasure(world, realm, distinctId, keep);
    return keeper.written ?? success({ jobId });
  }),
  endpoint(contract.getDeletionStatus, async ({ world, caller, input }) => {
    const job = await findErasure(world, caller.realm.realm, input.jobId);
    if (job === null) throw new Refused("not_found", "Deletion job not found");
    return success({
      status: job.status,
      requestedAt: timeText(job.requested_at_ms),
      startedAt: timeTextOrNull(job.started_at_ms),
      completedAt: timeTextOrNull(job.completed_at_ms),
      errorMessage: job.error_message,
    });
  }),
];

interface FeatureWorld {
  readonly features: Pick<Features, "privacySecret">;
}

function requirePrivacySecret({ features }: FeatureWorld): void {
  if (features.privacySecret === null) {
    throw new Refused("not_implemented", "HOLDFAST_PRIVACY_SECRET is not set");
  }
}
