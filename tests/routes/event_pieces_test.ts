// Server-sent events of a model server as the HTML standard allows them, in pieces of any size: both readers of answers, the
// gateway's and the client's, find the same text and report, and pass on the same bytes.

import assert from "node:assert/strict";
import { EventReader } from "../../routes/gateway/event_reader.ts";
import { meteredAnswer } from "../../src/client/model_answers.ts";
import type { OpenCall } from "../../src/client/model_calls.ts";

const hello = JSON.stringify({ choices: [{ delta: { content: "Hé👋" } }] });
const more = JSON.stringify({ choices: [{ delta: { content: "o" } }] });
const usage = { prompt_tokens: 3, completion_tokens: 4 };
const report = JSON.stringify({ choices: [], usage });

/** The parts of a stream: events that are passed on, and the report, which the caller did not ask for. */
const STREAMS: Readonly<Record<string, readonly [before: string, report: string, after: string]>> = {
  "LF": [`data: ${hello}\n\ndata: ${more}\n\n`, `data: ${report}\n\n`, "data: [DONE]\n\n"],
  "CR LF": [`data: ${hello}\r\n\r\ndata: ${more}\r\n\r\n`, `data: ${report}\r\n\r\n`, "data: [DONE]\r\n\r\n"],
  "CR": [`data: ${hello}\r\rdata: ${more}\r\r`, `data: ${report}\r\r`, "data: [DONE]\r\r"],
  "LF, then CR": [`data: ${hello}\n\rdata: ${more}\n\r`, `data: ${report}\n\r`, "data: [DONE]\n\r"],
  "CR LF, then CR": [
    `data: ${hello}\r\n\rdata: ${more}\r\n\r`,
    `data: ${report}\r\n\r`,
    "data: [DONE]\r\n\r",
  ],
  "CR LF, then LF": [
    `data: ${hello}\r\n\ndata: ${more}\r\n\n`,
    `data: ${report}\r\n\n`,
    "data: [DONE]\r\n\n",
  ],
  "CR, then CR LF": [
    `data: ${hello}\r\r\ndata: ${more}\r\r\n`,
    `data: ${report}\r\r\n`,
    "data: [DONE]\r\r\n",
  ],
  "no last empty line": [`data:${hello}\n\ndata:${more}\n\n`, `data:${report}\n\n`, "data:[DONE]"],
  "a byte order mark": [
    `\uFEFFdata: ${hello}\n\ndata: ${more}\n\n`,
    `data: ${report}\n\n`,
    "data: [DONE]\n\n",
  ],
  "a byte order mark before the first event alone": [
    `data: ${hello}\n\n\uFEFFdata: ${more}\n\ndata: ${more}\n\n`,
    `data: ${report}\n\n`,
    "data: [DONE]\n\n",
  ],
  "empty lines before an event": [
    `\r\n\r\n\ndata: ${hello}\r\r\rdata: ${more}\n\n\n\n`,
    `data: ${report}\n\n`,
    "data: [DONE]\n\n",
  ],
  "comments, other fields and no colon": [
    `: ping\n\nevent: chunk\nid\nretry: 10\n:\ndata: ${hello}\n\nevent\r: data: x\rdata: ${more}\r\r`,
    `: usage\ndata: ${report}\nid: 3\n\n`,
    "data\n\ndata: [DONE]\n\n",
  ],
  "data in several lines": [
    `data: {"choices": [{"delta":\ndata\rdata:{"content":\r\ndata:  "Hé👋o" }}\ndata: ]}\n\n`,
    `data: {"choices": [],\rdata: "usage": ${JSON.stringify(usage)}\rdata\rdata:}\r\r`,
    "data: [DONE]\n\n",
  ],
  "fields that are only like data": [
    `data : ${more}\nDATA: ${more}\n data: ${more}\ndatas: ${more}\n\ndata: ${hello}\n\ndata: ${more}\n\n`,
    `data: ${report}\n\n`,
    `data: [DONE]\n\n`,
  ],
};

interface Found {
  text: string;
  report: unknown;
  hasEnded: boolean;
  passed: string;
}

const decode = (bytes: readonly Uint8Array[]) =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes.flatMap((piece) => [...piece])));

const WAYS: Readonly<Record<string, (pieces: readonly Uint8Array[]) => Found | Promise<Found>>> = {
  "the gateway": (pieces) => {
    const reader = new EventReader("chat", true, true);
    const passed = [...pieces.flatMap((piece) => reader.take(piece)), reader.rest()];
    return { text: reader.text, report: reader.report, hasEnded: reader.hasEnded, passed: decode(passed) };
  },
  "the client": async (pieces) => {
    const found: Found = { text: "", report: undefined, hasEnded: false, passed: "" };
    const call = {
      addWork: () => {},
      addText: (text: string) => found.text += text,
      report: ({ providerUsage }: { providerUsage: unknown }) => found.report = providerUsage,
      finish: () => Promise.resolve(found.hasEnded = true),
    } as unknown as OpenCall;
    const source = new Response(ReadableStream.from(pieces), {
      headers: { "content-type": "text/event-stream" },
    });
    const answer = meteredAnswer(source, call, { shape: "chat", hidesUsage: true, signal: null });
    found.passed = decode([await answer.bytes()]);
    return found;
  },
};

for (const [way, read] of Object.entries(WAYS)) {
  Deno.test(`${way} reads events with any line ends, fields and pieces as the standard says`, async () => {
    for (const [name, [before, hidden, after]] of Object.entries(STREAMS)) {
      const bytes = new TextEncoder().encode(before + hidden + after);
      for (const size of [1, 2, 3, 5, 16, bytes.length]) {
        const pieces = Array.from(
          { length: Math.ceil(bytes.length / size) },
          (_, place) => bytes.slice(place * size, (place + 1) * size),
        );
        const expected = { text: "Hé👋o", report: usage, hasEnded: true, passed: before + after };
        assert.deepEqual(await read(pieces), expected, `${name}, in pieces of ${size}`);
      }
    }
  });
}

Deno.test("a complete event leaves at once, with any line ends", () => {
  for (const [name, [before]] of Object.entries(STREAMS)) {
    const reader = new EventReader("chat", true, false);
    assert.equal(decode(reader.take(new TextEncoder().encode(before))), before, name);
  }
});
