/** A coding agent on Responses against every double: tools of every kind, images in results, late instructions. */
import { describe, expect, it } from 'vitest';
import { asRecord } from '../../../../shared/wire/json.ts';
import { frames } from '../../../support/core-rig.ts';
import { sentPrefix, vendorModels, VendorRig } from '../../../support/vendor-rig.ts';

type Json = Record<string, unknown>;
const parameters = { type: 'object', properties: { cmd: { type: 'string' } }, required: ['cmd'] };
const tools = [
  { type: 'function', name: 'exec_command', description: 'Runs.', strict: false, parameters },
  { type: 'custom', name: 'apply_patch', description: 'Edits.', format: { type: 'text' } },
  {
    type: 'namespace',
    name: 'agents',
    description: 'Agents.',
    tools: [{ type: 'function', name: 'spawn', strict: false, parameters }],
  },
  { type: 'web_search', external_web_access: true },
];
const message = (role: string, text: string): Json => ({
  type: 'message',
  role,
  content: [{ type: 'input_text', text }],
});
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Removes the fields that Codex omits from the items that it sends back. */
const sentBack = ({ id: _id, status: _status, ...item }: Json): Json => item;

/** `models`: they answer in turn, while all others are down. */
async function session(models: readonly string[], withImages: boolean) {
  const rig = new VendorRig(vendorModels.filter(({ model }) => models.includes(model)));
  const input: Json[] = [message('developer', 'You are a coding agent.')];
  const seen: Json[] = [];
  const headers: (string | undefined)[] = [];
  const orders: string[] = [];
  let posts = 0;
  for (const [at, name] of ['exec_command', 'apply_patch', 'agents__spawn'].entries()) {
    if (at === 1) input.push(message('developer', 'Be careful from now on.'));
    input.push(message('user', `turns=2 three: use ${name}`));
    for (let turn = 0; turn < 4; turn += 1) {
      const id = `01codex${String((posts += 1)).padStart(19, '0')}`;
      const body = {
        model: 'm',
        stream: true,
        instructions: 'Work.',
        input: [...input],
        tools,
        tool_choice: 'auto',
        parallel_tool_calls: true,
        store: false,
        include: ['reasoning.encrypted_content'],
      };
      rig.down.clear();
      for (const model of models) if (model !== models[posts % models.length]) rig.down.add(model);
      // Wait until cooldowns end.
      if (models.length > 1) await rig.core.clock.run(rig.core.clock.sleep(3_600_000));
      const answer = await rig.core.post(body, { path: '/v1/responses', id });
      expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, '']);
      headers.push(answer.headers['x-relay-dropped']);
      const last = asRecord(frames(answer.text.replaceAll(/^event: .*\n/gm, '')).at(-1));
      const output = (asRecord(last['response'])['output'] as unknown[]).map(asRecord);
      input.push(...output.map(sentBack));
      orders.push(output.map(({ type }) => String(type)).join());
      const calls = output.filter(({ type }) => String(type).endsWith('_call'));
      seen.push(...calls);
      for (const { type, call_id: callId } of calls) {
        const image = withImages ? [{ type: 'input_image', image_url: pixel }] : [];
        input.push({
          type: `${String(type)}_output`,
          call_id: callId,
          output: [{ type: 'input_text', text: `done ${seen.length}` }, ...image],
        });
      }
      if (calls.length === 0) break;
    }
  }
  return { rig, seen, headers, orders };
}

describe.each(vendorModels.map(({ model }) => model))('a coding agent on %s', (model) => {
  it.each([false, true])(
    'calls tools of every kind, and no request is rejected (images: %s)',
    async (withImages) => {
      const { rig, seen, headers, orders } = await session([model], withImages);
      expect(rig.objections).toEqual([]);
      const made = seen.map(({ type, name, namespace, input }) => [type, name, namespace, input]);
      // A user's message of images alone is the last text that the scripted models look at.
      const isSteered = !withImages || /gpt-5|claude/.test(model);
      const times = <T>(value: T): T[] => Array.from({ length: 6 }, () => value);
      const wanted = [
        ...times(['function_call', 'exec_command', undefined, undefined]),
        ...times([
          'custom_tool_call',
          'apply_patch',
          undefined,
          expect.stringMatching(/free text|use apply_patch/),
        ]),
        ...times(['function_call', 'spawn', 'agents', undefined]),
      ];
      expect(made).toEqual(isSteered ? wanted : expect.anything());
      expect(new Set(headers)).toEqual(new Set(['tools']));
      // Reasoning comes before the item that it led to, so the last item is the message or a call.
      expect(orders.filter((order) => /reasoning/.test(order.slice(1)))).toEqual([]);
      const prefixes = rig.calls.map(({ body }) => sentPrefix(body));
      // A row that needs a single first system message moves the later one to the front.
      if (model.startsWith('picky')) return;
      for (const [index, prefix] of prefixes.slice(1).entries())
        expect(prefix.startsWith(prefixes[index] ?? '')).toBe(true);
    },
  );
});

describe('a coding agent whose vendors fail by turns', () => {
  const names = vendorModels.map(({ model }) => model);
  // Each vendor follows one and precedes another.
  const pairs = names.map((one, at) => [one, names[(at + 3) % names.length] ?? one]);

  it.each(pairs)('continues while %s and %s alternate with each turn', async (one, other) => {
    const { rig, seen } = await session([one, other], true);
    expect(rig.calls.filter(({ status }) => status !== 200)).toEqual([]);
    expect(new Set(rig.calls.map(({ body }) => body['model'])).size).toBe(2);
    expect(seen.length).toBeGreaterThanOrEqual(18);
    expect(rig.core.faults).toEqual([]);
  });
});
