// The AI SDK, metered by a middleware: an answer, a stream, and a call that the user's plan does not cover.

import process from "node:process";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, wrapLanguageModel } from "ai";
import { createClient, HoldfastError } from "holdfast-client";
import { holdfastMiddleware } from "holdfast-client/ai";

const { HOLDFAST_URL = "http://127.0.0.1:8000", HOLDFAST_KEY = "", HOLDFAST_USER = "user_demo" } =
  process.env;
const { OPENAI_BASE_URL = "https://api.openai.com/v1", OPENAI_API_KEY = "" } = process.env;

const holdfast = createClient({ apiKey: HOLDFAST_KEY, baseUrl: HOLDFAST_URL });
const provider = createOpenAICompatible({
  name: "openai",
  baseURL: OPENAI_BASE_URL,
  apiKey: OPENAI_API_KEY,
  includeUsage: true, // so that streams report what they used
});
const middleware = holdfastMiddleware({ client: holdfast, userId: HOLDFAST_USER, event: "chat.reply" });
const model = wrapLanguageModel({ model: provider("gpt-4o-mini"), middleware });

const { text } = await generateText({ model, prompt: "Write a haiku.", maxOutputTokens: 200 });
console.log(text);

const { textStream } = streamText({ model, prompt: "Write another one.", maxOutputTokens: 200 });
for await (const piece of textStream) process.stdout.write(piece);
console.log();

try {
  await generateText({ model, prompt: "Write a novel.", maxOutputTokens: 1_000_000 });
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  console.log(`${error.status} ${error.code}`);
}

const { counters } = await holdfast.usage(HOLDFAST_USER, "chat.reply");
console.log(counters.map(({ label, count, quota }) => `${label}: ${count} of ${quota}`).join("\n"));
