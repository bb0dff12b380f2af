/** Example code for a first call with each common client. */
import { agentSnippets, type Snippet } from './page-snippets-agents.ts';

export function snippets(baseUrl: string, models: string[]): Snippet[] {
  const model = models[0] ?? 'MODEL';
  const [quotedModel, quotedUrl] = [JSON.stringify(model), JSON.stringify(baseUrl)];
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello' }] });
  return [
    {
      title: 'curl',
      code: [
        `curl -N ${baseUrl}/chat/completions \\`,
        `  -H "Authorization: Bearer $RELAY_KEY" \\`,
        `  -H "Content-Type: application/json" \\`,
        `  -d ${shellQuoted(body)}`,
      ].join('\n'),
    },
    {
      title: 'Node (openai)',
      code: [
        `import OpenAI from "openai";`,
        ``,
        `const client = new OpenAI({`,
        `  baseURL: ${quotedUrl},`,
        `  apiKey: process.env.RELAY_KEY,`,
        `});`,
        `const stream = await client.chat.completions.create({`,
        `  model: ${quotedModel},`,
        `  stream: true,`,
        `  messages: [{ role: "user", content: "Hello" }],`,
        `});`,
        `for await (const chunk of stream) {`,
        `  process.stdout.write(chunk.choices[0]?.delta.content ?? "");`,
        `}`,
      ].join('\n'),
    },
    {
      title: 'Python (openai)',
      code: [
        `import os`,
        `from openai import OpenAI`,
        ``,
        `client = OpenAI(base_url=${quotedUrl}, api_key=os.environ["RELAY_KEY"])`,
        `stream = client.chat.completions.create(`,
        `    model=${quotedModel},`,
        `    stream=True,`,
        `    messages=[{"role": "user", "content": "Hello"}],`,
        `)`,
        `for chunk in stream:`,
        `    if chunk.choices:`,
        `        print(chunk.choices[0].delta.content or "", end="", flush=True)`,
      ].join('\n'),
    },
    ...agentSnippets(baseUrl, model),
  ];
}

const shellQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
