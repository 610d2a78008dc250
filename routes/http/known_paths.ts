// The router of the app. Most calls go to a few paths without parameters, so the results of the library's router for such
// paths are remembered: looking a path up costs less than taking it apart, and leaves no garbage.

import type { Result, Router } from "hono/router";
import { TrieRouter } from "hono/router/trie-router";

/** A router that remembers its results for paths without parameters, by method. */
export class KnownPathRouter<Handler> implements Router<Handler> {
  readonly name = "KnownPathRouter";
  readonly #router = new TrieRouter<Handler>();
  readonly #methods = new Set<string>();
  /** Results by path and method. Unknown paths are left out, so callers cannot make it grow. */
  readonly #known = new Map<string, Map<string, Result<Handler>>>();

  add(method: string, path: string, handler: Handler): void {
    this.#router.add(method, path, handler);
    this.#methods.add(method);
    if (!/[:*]/.test(path)) this.#known.set(path, new Map());
    // It may match known paths.
    else for (const answers of this.#known.values()) answers.clear();
  }

  match(method: string, path: string): Result<Handler> {
    const answers = this.#known.get(path);
    return answers?.get(method) ?? this.#find(method, path, answers);
  }

  #find(
    method: string,
    path: string,
    answers: Map<string, Result<Handler>> | undefined,
  ): Result<Handler> {
    const found = this.#router.match(method, path);
    if (this.#methods.has(method)) answers?.set(method, found);
    return found;
  }
}
