// A new secret. It is only in the response to the form that created it.

import type { Crumb } from "./page.tsx";
import type { PageContent } from "./page_context.ts";

/** Returns the page that shows a secret once. */
export function secretPage({ title, crumbs, secret, text, back }: {
  readonly title: string;
  readonly crumbs: readonly Crumb[];
  readonly secret: string;
  readonly text: string;
  /** The path of the page that follows. */
  readonly back: string;
}): PageContent {
  return {
    title,
    crumbs,
    content: (
      <section class="card form-card" data-answer>
        <h1>{title}</h1>
        <p>It is shown only once. Copy it now.</p>
        <label for="secret">{title}</label>
        <input id="secret" class="secret" type="text" readonly value={secret} spellcheck={false} autofocus />
        <p class="hint">{text}</p>
        <div class="buttons">
          <button type="button" data-copies="secret" hidden>Copy</button>
          <a class="button primary" href={back}>Done</a>
        </div>
      </section>
    ),
  };
}
