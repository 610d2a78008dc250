// The `openai` package, metered by a wrapper: an answer, a stream, and a call that the user's plan does not cover.

import process from "node:process";
import { createClient, HoldfastError } from "holdfast-client";
import { meterOpenAI } from "holdfast-client/openai";
import OpenAI from "openai";

const { HOLDFAST_URL = "http://127.0.0.1:8000", HOLDFAST_KEY = "", HOLDFAST_USER = "user_demo" } =
  process.env;

const holdfast = createClient({ apiKey: HOLDFAST_KEY, baseUrl: HOLDFAST_URL });
// `new OpenAI()` reads OPENAI_API_KEY and OPENAI_BASE_URL.
const openai = meterOpenAI(new OpenAI(), { client: holdfast, userId: HOLDFAST_USER, event: "chat.reply" });
const model = "gpt-4o-mini";

const reply = await openai.responses.create({ model, input: "Write a haiku.", max_output_tokens: 200 });
console.log(reply.output_text);

const stream = await openai.chat.completions.create({
  model,
  messages: [{ role: "user", content: "Write another one." }],
  max_completion_tokens: 200,
  stream: true,
});
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? "");
console.log();

try {
  await openai.responses.create({ model, input: "Write a novel.", max_output_tokens: 1_000_000 });
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  console.log(`${error.status} ${error.code}`);
}

const { counters } = await holdfast.usage(HOLDFAST_USER, "chat.reply");
console.log(counters.map(({ label, count, quota }) => `${label}: ${count} of ${quota}`).join("\n"));
