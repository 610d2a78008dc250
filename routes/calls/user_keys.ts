// Keys of users: create, list, revoke.

import type { AuditWorld } from "../../src/audit/audit.ts";
import { newEndUserKey, textOfKey } from "../../src/tenant/end_user_key.ts";
import * as contract from "../contract/user_keys.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";
import { auditedByKey } from "../http/audited.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";

type KeysWorld = TurnWorld & AuditWorld;

const endpoint = endpointsOn<KeysWorld>();

export const USER_KEYS: readonly Endpoint<KeysWorld>[] = [
  endpoint(contract.createUserKey, (request) => {
    const { world, caller, input: { userId, name = null, expiresAt = null } } = request;
    const { mode, realm } = caller.realm;
    const { secret, ...stored } = newEndUserKey(mode);
    const input = { name, expiresAt, ...stored, realNow: world.clock.now() };
    const call = { name: "createEndUserKey", input } as const;
    const action = { what: contract.createUserKey.id, userId };
    const after = ({ userKeyId }: { readonly userKeyId?: unknown }) => ({ userKeyId, name });
    // No first answer is kept: it would have the key.
    return auditedByKey(
      world,
      caller,
      action,
      after,
      () =>
        runTurn({ ...request, idempotent: null }, { userId }, call, ({ id }) => ({
          userKeyId: id,
          key: textOfKey(mode, secret, realm, id),
        })),
    );
  }),
  endpoint(contract.listUserKeys, (request) => {
    const { userId } = request.input;
    return runTurn(request, { userId }, { name: "endUserKeys", input: {} }, ({ keys }) => ({
      keys: keys.map((row) => ({
        userKeyId: row.id,
        name: row.name,
        prefix: row.prefix,
        createdAt: timeText(row.createdAt),
        expiresAt: timeTextOrNull(row.expiresAt),
        lastUsedAt: timeTextOrNull(row.lastUsedAt),
      })),
    }));
  }),
  endpoint(contract.revokeUserKey, (request) => {
    const { world, caller, input: { userId, userKeyId } } = request;
    const input = { id: userKeyId, realNow: world.clock.now() };
    const call = { name: "revokeEndUserKey", input } as const;
    const action = { what: contract.revokeUserKey.id, userId };
    return auditedByKey(
      world,
      caller,
      action,
      () => ({ userKeyId }),
      () => runTurn(request, { userId }, call, () => ({ userKeyId })),
    );
  }),
];
