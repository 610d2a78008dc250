// The gateway: the unchanged `openai` package, with Holdfast's address and key in place of the model server's. It meters
// programs in which the client cannot be installed. The service has the key of the model server.

import process from "node:process";
import OpenAI from "openai";

const { HOLDFAST_URL = "http://127.0.0.1:8000", HOLDFAST_KEY = "", HOLDFAST_USER = "user_demo" } =
  process.env;

const openai = new OpenAI({
  baseURL: `${HOLDFAST_URL}/openai/v1`,
  apiKey: HOLDFAST_KEY,
  defaultHeaders: { "X-Holdfast-User": HOLDFAST_USER, "X-Holdfast-Event": "chat.reply" },
});
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
  if (!(error instanceof OpenAI.RateLimitError)) throw error;
  console.log(`${error.status} ${error.code}`);
}
