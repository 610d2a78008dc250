// A secret that was just made. It stands in the answer of the form that made it and nowhere else.

/** The one time that a secret shows. */
export function NewSecret(
  { title, secret, text, back }: { title: string; secret: string; text: string; back: string },
) {
  return (
    <section class="sheet act">
      <h1>{title}</h1>
      <p>This is the only time that it shows. Copy it now.</p>
      <label for="secret">{title}</label>
      <input id="secret" class="secret" type="text" readonly value={secret} spellcheck={false} autofocus />
      <p class="hint">{text}</p>
      <div class="buttons">
        <button type="button" data-copies="secret" hidden>Copy</button>
        <a class="button primary" href={back}>I have it</a>
      </div>
    </section>
  );
}
