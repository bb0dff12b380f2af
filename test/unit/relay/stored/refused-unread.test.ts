/** Calls that continue a stored response and are rejected before it is read. */
import { describe, expect, it, vi } from 'vitest';
import { BillingRig, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import { hello, type Answer } from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const unknown = `resp-${'9'.repeat(26)}`;
const onward = { previous_response_id: unknown };
const referring = (items: Json[]) => [{ type: 'item_reference', id: `msg_${'9'.repeat(26)}_0` }, ...items];
const image = (url: string) => ({ role: 'user', content: [{ type: 'input_image', image_url: url }] });
const hi = { model: 'm', input: 'hi', max_output_tokens: 78 };

/** An account that may store, and the reads of its responses. */
function rigOf(key: Json = {}, options: BillingOptions = {}) {
  const rig = new BillingRig({ key: { store: true, ...key }, ...options }).upstream({ steps: hello });
  const reads = vi.spyOn(rig.stored.responses, 'read');
  const post = (body: Json, headers: Record<string, string> = {}): Promise<Answer> =>
    rig.call(
      { ...hi, ...body },
      { path: '/v1/responses', headers: { authorization: 'Bearer sk-test', ...headers } },
    );
  return { rig, reads, post };
}

const refusal = ({ status, text }: Answer): string => {
  const { error } = JSON.parse(text) as { error: Json };
  return [status, error['code'], error['param']].join(' ');
};

const wrong: [string, Json, string][] = [
  ['no model', { model: undefined }, '400 missing_required_parameter model'],
  ['no input', { input: undefined }, '400 missing_required_parameter input'],
  ['an invalid limit', { max_output_tokens: 'x' }, '400 invalid_type max_output_tokens'],
  ['an item of an unknown type', { input: [{ type: 'x' }] }, '400 unsupported_input_item input[0].type'],
  [
    'such an item after a reference',
    { input: referring([{ type: 'x' }]) },
    '400 unsupported_input_item input[1].type',
  ],
  ['an unknown role', { input: [{ role: 'x' }] }, '400 invalid_value input[0].role'],
  [
    'an output without call_id',
    { input: [{ type: 'function_call_output', output: 'x' }] },
    '400 missing_required_parameter input[0].call_id',
  ],
  [
    'a reference without id',
    { input: [{ type: 'item_reference' }] },
    '400 missing_required_parameter input[0].id',
  ],
  ['a conversation as an object', { conversation: 'conv_1' }, '400 unsupported_parameter conversation'],
  ['two choices', { n: 2 }, '400 unsupported_parameter n'],
  ['an invalid store', { store: 'no' }, '400 invalid_type store'],
  ['background that is not stored', { store: false, background: true }, '400 invalid_value background'],
  ['an invalid model name', { model: 'web-' }, '400 invalid_value model'],
  ['an unknown model', { model: 'nobody' }, '404 model_not_found model'],
  ['official billing without permission', { official: true }, '403 official_not_allowed model'],
  [
    'an image at a URL that is not public',
    { input: [image('https://127.0.0.1/x.png')] },
    '400 invalid_image_url input[0].content[0].image_url',
  ],
];

describe('a call that continues an unknown response', () => {
  it.each(wrong)('is rejected for %s without a read of the store', async (_case, body, expected) => {
    const { rig, reads, post } = rigOf();
    rig.granted(yuan);
    expect(refusal(await post({ ...onward, ...body }))).toBe(expected);
    expect(reads).toHaveBeenCalledTimes(0);
  });

  it.each<[string, Json, Json, string]>([
    ['its whitelist', { models: ['other'] }, {}, '403 model_not_allowed model'],
    ['the missing right to store', { store: false }, {}, '400 unsupported_parameter previous_response_id'],
    [
      'the missing right to refer to items',
      { store: false },
      { previous_response_id: undefined, input: referring([]) },
      '400 unsupported_input_item input[0].type',
    ],
  ])('is rejected for %s of its key without a read of the store', async (_case, key, body, expected) => {
    const { rig, reads, post } = rigOf(key);
    rig.granted(yuan);
    expect(refusal(await post({ ...onward, ...body }))).toBe(expected);
    expect(reads).toHaveBeenCalledTimes(0);
  });

  it('is rejected at the limit of its key a minute without a read of the store', async () => {
    const { rig, reads, post } = rigOf({ rpm: 1 });
    rig.granted(yuan);
    expect((await post({})).status).toBe(200);
    expect(refusal(await post(onward))).toBe('429 rate_limit_exceeded ');
    expect(reads).toHaveBeenCalledTimes(0);
  });

  it('is rejected for a balance that was just empty without a read of the store', async () => {
    const { rig, reads, post } = rigOf();
    rig.granted(1n);
    expect(refusal(await post({}))).toBe('429 insufficient_quota ');
    expect(refusal(await post(onward))).toBe('429 insufficient_quota ');
    expect(reads).toHaveBeenCalledTimes(0);
  });
});

describe('a call that continues a stored response', () => {
  it('is checked again with the earlier turns: their images need a channel with vision', async () => {
    const channels = [{}, { id: 'blind', models: ['blind'], can: { images: false } }];
    const { rig, reads, post } = rigOf({}, { channels });
    rig.granted(100n * yuan);
    const data = 'data:image/png;base64,iVBORw0KGgo=';
    const { id } = JSON.parse((await post({ input: [image(data)] })).text) as { id: string };
    const answer = await post({ model: 'blind', previous_response_id: id });
    expect(refusal(answer)).toBe('400 unsupported_parameter messages[0].content[0]');
    expect(reads).toHaveBeenCalledTimes(1);
  });
});
