// A new secret. It is only in the response to the form that created it.

/** The page that shows a secret once. */
export function NewSecret(
  { title, secret, text, back }: { title: string; secret: string; text: string; back: string },
) {
  return (
    <section class="card form-card">
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
  );
}
