// Reads server-sent events from the body of an answer, by the HTML standard. `EventSource` cannot be used, since it
// cannot send a key.

/** An event. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/**
 * The events of a body, each when it arrives.
 *
 * @param signal ends them
 * @param onBytes called on each arrival of bytes, also of a comment
 */
export async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  onBytes: () => void,
): AsyncGenerator<ServerEvent, void> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  const decoder = new TextDecoder();
  let text = "";
  let name = "";
  let data: string[] = [];
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      text += decoder.decode(value, { stream: true });
      // A carriage return at the end may be the first half of a line break.
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      text = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { name: name === "" ? "message" : name, data: data.join("\n") };
          name = "";
          data = [];
          continue;
        }
        const [, field = "", content = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        if (field === "event") name = content;
        else if (field === "data") data.push(content);
      }
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}
