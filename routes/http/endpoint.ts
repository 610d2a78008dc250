// Binds calls of the contract to their handlers.

import type { Belonging } from "../../src/cluster/stores.ts";
import type { CheckedOf, DataOf, KeyedDefinition, KeylessDefinition } from "../contract/definition.ts";
import type { Answer, Handled, RawAnswer } from "./answer.ts";
import type { Across, Endpoint, EndpointRequest, KeylessEndpoint, KeylessRequest } from "./endpoint_types.ts";

/** Binds calls to handlers that work on `World`: a handler gets the call's input and returns the call's answer. */
export function endpointsOn<World>() {
  return <Call extends KeyedDefinition>(
    call: Call,
    handle: (
      request: EndpointRequest<World, CheckedOf<Call>>,
    ) => Promise<Handled<DataOf<Call>>> | Handled<DataOf<Call>>,
  ): Endpoint<World> => ({ ...call, handle }) as unknown as Endpoint<World>;
}

/** The result of a handler without an API key: a response of its own if the answer has no envelope. */
type KeylessHandled<Call extends KeylessDefinition> = Call extends { readonly mediaType: string }
  ? RawAnswer<DataOf<Call>>
  : Answer<DataOf<Call>>;

/** Options of a call without an API key. */
interface KeylessOptions<World, Call extends KeylessDefinition>
  extends Pick<KeylessEndpoint<World>, "misfit" | "admits"> {
  /** Set if the input names neither an app nor a workspace. */
  readonly about?: (
    request: Pick<KeylessRequest<World, CheckedOf<Call>>, "world" | "input">,
  ) => Belonging | null;
  readonly head?: (request: KeylessRequest<World, CheckedOf<Call>>) => Response;
  readonly gather?: (answers: readonly DataOf<Call>[]) => DataOf<Call>;
  readonly across?: Across<World, CheckedOf<Call>, DataOf<Call>>;
}

/** The same for calls without an API key. */
export function keylessEndpointsOn<World>() {
  return <Call extends KeylessDefinition>(
    { about, ...call }: Call,
    handle: (
      request: KeylessRequest<World, CheckedOf<Call>>,
    ) => Promise<KeylessHandled<Call>> | KeylessHandled<Call>,
    options: KeylessOptions<World, Call> = {},
  ): KeylessEndpoint<World> => {
    const found = about === undefined ? {} : { about: aboutMember(about) };
    return { ...call, ...found, ...options, handle } as unknown as KeylessEndpoint<World>;
  };
}

function aboutMember(member: "appId" | "workspaceId") {
  return ({ input }: { readonly input: unknown }): Belonging | null => {
    const id = (input as Readonly<Record<string, string | null | undefined>>)[member] ?? null;
    return id === null ? null : { [member]: id } as Belonging;
  };
}
