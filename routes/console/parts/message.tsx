// A page with a title and one sentence.

/** A title and a sentence. */
export function Message({ title, text }: { title: string; text: string }) {
  return (
    <section class="message">
      <h1>{title}</h1>
      <p>{text}</p>
    </section>
  );
}
