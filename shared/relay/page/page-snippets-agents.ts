/** Example settings of coding agents, and the AI SDK. docs/codex.md has more of both agents. */
export interface Snippet {
  title: string;
  code: string;
}

export function agentSnippets(baseUrl: string, model: string): Snippet[] {
  const [quotedModel, quotedUrl] = [JSON.stringify(model), JSON.stringify(baseUrl)];
  return [
    {
      title: 'AI SDK',
      code: [
        `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";`,
        `import { streamText } from "ai";`,
        ``,
        `const relay = createOpenAICompatible({`,
        `  name: "relay",`,
        `  baseURL: ${quotedUrl},`,
        `  apiKey: process.env.RELAY_KEY,`,
        `});`,
        `const { textStream } = streamText({ model: relay(${quotedModel}), prompt: "Hello" });`,
        `for await (const text of textStream) process.stdout.write(text);`,
      ].join('\n'),
    },
    {
      title: 'Codex (~/.codex/config.toml)',
      code: [
        `model = ${quotedModel}`,
        `model_provider = "relay"`,
        ``,
        `[model_providers.relay]`,
        `name = "Relay"`,
        `base_url = ${quotedUrl}`,
        `wire_api = "responses"`,
        `env_key = "RELAY_KEY"`,
      ].join('\n'),
    },
    {
      title: 'opencode (opencode.json)',
      code: JSON.stringify(
        {
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
        },
        undefined,
        2,
      ),
    },
  ];
}
