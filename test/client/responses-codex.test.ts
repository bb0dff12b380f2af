import { beforeAll, expect, test } from 'vitest';
import type { OutputItem } from '../../shared/endpoints/responses/answer-items.ts';
import { readByGrammar } from '../golden/responses/grammar.ts';
import { readEvents } from '../golden/responses/read-events.ts';
import { chunk, toolDelta, usageChunk } from '../support/upstream-frames.ts';
import { frames, textStream } from '../support/upstream-scripts.ts';
import { models, shownId, clientStack } from './client-stack.ts';

/** A conversation in the observed format of Codex CLI 0.169, with models that it knows and that it does not know. */
let stack: Awaited<ReturnType<typeof clientStack>>;

beforeAll(async () => {
  stack = await clientStack();
});

const parameters = { type: 'object', properties: { cmd: { type: 'string' } }, required: ['cmd'] };
const tools = [
  { type: 'function', name: 'exec_command', description: 'Runs.', strict: false, parameters },
  {
    type: 'custom',
    name: 'apply_patch',
    description: 'Edits.',
    format: { type: 'grammar', definition: 'x' },
  },
  {
    type: 'namespace',
    name: 'multi_agent_v1',
    description: 'Agents.',
    tools: [{ type: 'function', name: 'spawn_agent', strict: false, parameters }],
  },
  { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters },
  { type: 'web_search', external_web_access: true },
];
const inputTools = {
  type: 'additional_tools',
  id: 'at_1',
  role: 'developer',
  tools: [
    { type: 'namespace', name: 'functions', description: '', tools: [{ type: 'custom', name: 'exec' }] },
  ],
};
const message = (role: string, text: string) => ({
  type: 'message',
  id: `msg_${text.length}`,
  role,
  content: [{ type: 'input_text', text }],
});

async function turn(input: object[]): Promise<OutputItem[]> {
  const body = {
    model: models.scripted,
    stream: true,
    input,
    tools,
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'medium', summary: 'auto', context: 'all_turns' },
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: '01a1fdac',
    text: { verbosity: 'low' },
    client_metadata: { session: '01a1fdac' },
  };
  const response = await fetch(`${stack.baseUrl}/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.key}`, accept: 'text/event-stream' },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return readByGrammar(readEvents(await response.text())).output;
}

const begun = (index: number, name: string, text: string) =>
  chunk(toolDelta(index, { id: `call_${index}`, type: 'function', function: { name, arguments: text } }));
const callIdsOf = (items: OutputItem[]): string[] =>
  items.flatMap((item) => ('call_id' in item ? [item.call_id] : []));
const goes = (index: number, text: string) => chunk(toolDelta(index, { function: { arguments: text } }));

test('a coding agent works over several turns with tools of every kind', async () => {
  const input: object[] = [
    inputTools,
    message('developer', 'You are a coding agent.'),
    message('user', '<environment_context>...</environment_context>'),
    message('user', 'Make the file.'),
  ];
  stack.upstream.script(
    frames(
      chunk({ role: 'assistant', reasoning_content: 'Three at once.' }),
      begun(0, 'exec_command', ''),
      begun(1, 'multi_agent_v1__spawn_agent', '{"cmd":'),
      begun(2, 'functions__exec', '{"input":"text('),
      goes(0, '{"cmd":"ls"}'),
      goes(2, '1)"}'),
      goes(1, '"help"}'),
      chunk({}, 'tool_calls'),
      usageChunk(),
    ),
  );
  const calls = await turn(input);
  expect(calls).toMatchObject([
    { type: 'reasoning', summary: [{ text: 'Three at once.' }] },
    {
      type: 'function_call',
      name: 'exec_command',
      call_id: expect.stringMatching(shownId('call_0')) as unknown,
      arguments: '{"cmd":"ls"}',
    },
    { type: 'function_call', name: 'spawn_agent', namespace: 'multi_agent_v1', arguments: '{"cmd":"help"}' },
    {
      type: 'custom_tool_call',
      name: 'exec',
      namespace: 'functions',
      call_id: expect.stringMatching(shownId('call_2')) as unknown,
      input: 'text(1)',
    },
  ]);

  const ids = callIdsOf(calls);
  input.push(
    ...calls,
    {
      type: 'custom_tool_call_output',
      id: 'ctco_1',
      call_id: ids[2],
      output: [{ type: 'input_text', text: '1' }],
    },
    { type: 'function_call_output', id: 'fco_1', call_id: ids[0], output: 'one.txt' },
    { type: 'function_call_output', id: 'fco_2', call_id: ids[1], output: 'hired' },
  );
  stack.upstream.script(
    frames(
      chunk({ role: 'assistant', content: 'Now I edit.' }),
      begun(0, 'apply_patch', '{"input":"*** Begin Patch\\n"}'),
      chunk({}, 'tool_calls'),
      usageChunk(),
    ),
  );
  const edit = await turn(input);
  expect(edit).toMatchObject([
    { type: 'message', content: [{ text: 'Now I edit.' }] },
    { type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin Patch\n' },
  ]);

  input.push(...edit, { type: 'custom_tool_call_output', call_id: callIdsOf(edit)[0], output: 'Success.' });
  stack.upstream.script(textStream('All done.'));
  expect(await turn(input)).toMatchObject([{ content: [{ text: 'All done.' }] }]);

  expect(stack.sentMessages().at(-1)).toMatchObject([
    { role: 'system' },
    { role: 'user' },
    { role: 'user' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'call_0', function: { name: 'exec_command' } },
        { id: 'call_1', function: { name: 'multi_agent_v1__spawn_agent' } },
        { id: 'call_2', function: { name: 'functions__exec', arguments: '{"input":"text(1)"}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_0', content: 'one.txt' },
    { role: 'tool', tool_call_id: 'call_1', content: 'hired' },
    { role: 'tool', tool_call_id: 'call_2', content: '1' },
    { role: 'assistant', content: 'Now I edit.', tool_calls: [{ function: { name: 'apply_patch' } }] },
    { role: 'tool', tool_call_id: 'call_0', content: 'Success.' },
  ]);
  const sent = stack.upstream.requests.map(({ body }) => body['tools'] as { function: { name: string } }[]);
  expect(sent[0]?.map((tool) => tool.function.name)).toEqual([
    'exec_command',
    'apply_patch',
    'multi_agent_v1__spawn_agent',
    'functions__exec',
  ]);
  await expect.poll(() => stack.log().match(/"dropped_tools":2/g)).toHaveLength(3);
});
