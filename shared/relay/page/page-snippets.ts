/** Example code for a first call with each common client. docs/codex.md and docs/claude-code.md have more of the coding agents. */
export function listSnippets(baseUrl: string, models: string[]): { title: string; code: string }[] {
  const model = models[0] ?? 'MODEL';
  const [quotedModel, quotedUrl] = [JSON.stringify(model), JSON.stringify(baseUrl)];
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello' }] });
  const opencode = {
    $schema: 'https://opencode.ai/config.json',
    provider: {
      relay: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Relay',
        options: { baseURL: baseUrl, apiKey: '{env:RELAY_KEY}' },
        models: { [model]: {} },
      },
    },
    model: `relay/${model}`,
  };
  return [
    {
      title: 'curl',
      code: String.raw`curl -N ${baseUrl}/chat/completions \
  -H "Authorization: Bearer $RELAY_KEY" \
  -H "Content-Type: application/json" \
  -d ${quoteForShell(body)}`,
    },
    {
      title: 'Node (openai)',
      code: `import OpenAI from "openai";

const client = new OpenAI({
  baseURL: ${quotedUrl},
  apiKey: process.env.RELAY_KEY,
});
const stream = await client.chat.completions.create({
  model: ${quotedModel},
  stream: true,
  messages: [{ role: "user", content: "Hello" }],
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}`,
    },
    {
      title: 'Python (openai)',
      code: `import os
from openai import OpenAI

client = OpenAI(base_url=${quotedUrl}, api_key=os.environ["RELAY_KEY"])
stream = client.chat.completions.create(
    model=${quotedModel},
    stream=True,
    messages=[{"role": "user", "content": "Hello"}],
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`,
    },
    {
      title: 'AI SDK',
      code: `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const relay = createOpenAICompatible({
  name: "relay",
  baseURL: ${quotedUrl},
  apiKey: process.env.RELAY_KEY,
});
const { textStream } = streamText({ model: relay(${quotedModel}), prompt: "Hello" });
for await (const text of textStream) process.stdout.write(text);`,
    },
    {
      title: 'Claude Code',
      code: `export ANTHROPIC_BASE_URL=${baseUrl.replace(/\/v1$/, '')}
export ANTHROPIC_AUTH_TOKEN="$RELAY_KEY" ANTHROPIC_MODEL=${quoteForShell(model)}
claude`,
    },
    {
      title: 'Codex (~/.codex/config.toml)',
      code: `model = ${quotedModel}
model_provider = "relay"

[model_providers.relay]
name = "Relay"
base_url = ${quotedUrl}
wire_api = "responses"
env_key = "RELAY_KEY"`,
    },
    { title: 'opencode (opencode.json)', code: JSON.stringify(opencode, undefined, 2) },
  ];
}

const quoteForShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
