/** URLs that upstreams would fetch, as callers send them. */
import { describe, expect, it } from 'vitest';
import { readSetting } from '../../../../shared/config/setting-rows.ts';
import type { Settings } from '../../../../shared/config/settings.ts';
import { BillingRig, yuan } from '../../../support/billing-rig.ts';
import { hello } from '../../../support/core-rig.ts';

const rigOf = (settings: Partial<Settings> = {}): BillingRig =>
  new BillingRig({ settings }).upstream({ steps: hello }).granted(10_000n * yuan);

/** The outcome: `sent`, or the refusal. A rejected call must not reach the store. */
async function outcome(rig: BillingRig, body: object, path = '/v1/chat/completions'): Promise<string> {
  const before = rig.store.sent.length;
  const answer = await rig.call({ model: 'm', ...body }, { path });
  if (answer.status === 200) return `sent ${rig.sent.length}`;
  const { error } = JSON.parse(answer.text) as { error: { code: string; param: string; message: string } };
  expect(rig.store.sent.length).toBe(before);
  expect(rig.sent).toEqual([]);
  return `${answer.status} ${error.code} ${error.param} ${error.message}`;
}
const inChat = (part: object, rig = rigOf()): Promise<string> =>
  outcome(rig, { messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, part] }] });
const inResponses = (item: object, rig = rigOf()): Promise<string> =>
  outcome(rig, { input: [{ role: 'user', content: 'hi' }, item] }, '/v1/responses');
const image = (url: string): object => ({ type: 'image_url', image_url: { url } });

const pixel = 'data:image/png;base64,iVBORw0KGgo=';
const pdf = 'data:application/pdf;base64,JVBERi0xLjQ=';
const accepted = [
  pixel,
  'DATA:IMAGE/JPEG;base64,/9j/',
  'https://images.example/cat.png',
  'HTTPS://images.example/Cat.png?sig=a%20b&x=http://a',
  'https://images.example:8443/图片.png',
];
const refused = [
  'http://images.example/cat.png',
  'http://127.0.0.1:8080/x',
  'http://169.254.169.254/latest/meta-data/',
  'file:///etc/passwd',
  'ftp://images.example/cat.png',
  'gopher://127.0.0.1:6379/_x',
  '//images.example/cat.png',
  '/etc/passwd',
  'iVBORw0KGgo=',
  'javascript:alert(1)',
  'data:application/pdf;base64,JVBERi0xLjQ=',
  'data:text/html,<script>',
  'data:image/svg+xml;base64,PHN2Zz4=',
  'DATA:IMAGE/SVG+XML,<svg>',
  ' https://images.example/cat.png',
  '\thttps://images.example/cat.png',
  'ht\ntps://images.example/cat.png',
  'https:images.example/cat.png',
  'https:/images.example/cat.png',
  'https:///images.example/cat.png',
  'https:\\\\images.example\\cat.png',
  'https://images.example\\@127.0.0.1/cat.png',
  'https://images.example/a b.png',
  'https://user:pass@images.example/cat.png',
  'https://user@images.example/cat.png',
  'https://127.0.0.1/cat.png',
  'https://0x7f.1/cat.png',
  'https://[::1]/cat.png',
  'https://[::ffff:169.254.169.254]/x',
  'https://10.0.0.7/cat.png',
  'https://localhost/cat.png',
  'https://LOCALHOST./cat.png',
  'https://metadata.google.internal/computeMetadata',
  'https://vllm/cat.png',
  `https://images.example/${'a'.repeat(8_192)}`,
];

describe('the URL of an image', () => {
  it.each(accepted)('may be %s', async (url) => {
    expect(await inChat(image(url))).toBe('sent 1');
    expect(await inResponses({ role: 'user', content: [{ type: 'input_image', image_url: url }] })).toBe(
      'sent 1',
    );
  });

  it.each(refused)('may not be %s', async (url) => {
    const named = /^400 invalid_image_url messages\[0\]\.content\[1\]\.image_url\.url '/;
    expect(await inChat(image(url))).toMatch(named);
    const content = [{ type: 'input_image', image_url: url }];
    expect(await inResponses({ role: 'user', content })).toMatch(
      /^400 invalid_image_url input\[1\]\.content\[0\]\.image_url '/,
    );
  });

  it('is checked in every place and never quoted', async () => {
    const secret = 'http://images.example/cat.png?token=secret';
    const output = [{ type: 'input_image', image_url: secret }];
    const call = { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' };
    const asked = { input: [call, { type: 'function_call_output', call_id: 'c', output }] };
    const answer = await outcome(rigOf(), asked, '/v1/responses');
    expect(answer).toMatch(/^400 invalid_image_url input\[1\]\.output\[0\]\.image_url '/);
    expect(answer).not.toContain('secret');
    const tool_calls = [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }];
    const ofTool = { role: 'tool', tool_call_id: 'c', content: [image(secret)] };
    expect(await outcome(rigOf(), { messages: [{ role: 'assistant', tool_calls }, ofTool] })).toMatch(
      /^400 invalid_image_url messages\[1\]\.content\[0\]\.image_url\.url '/,
    );
    const ofVendor = { role: 'assistant', content: 'Here.', images: [image(secret)] };
    const next = { role: 'user', content: 'Thanks.' };
    expect(await outcome(rigOf(), { messages: [ofVendor, next] })).toMatch(
      /^400 invalid_image_url messages\[0\]\.images\[0\]\.image_url\.url '/,
    );
    expect(await inChat({ type: 'text', text: 'hi', image_url: { url: secret } })).toMatch(/^400/);
    // The same part alone, without the text that its type requires.
    const content = [{ type: 'text', image_url: { url: secret } }];
    expect(await outcome(rigOf(), { messages: [{ role: 'user', content }] })).toMatch(/^400/);
  });

  it.each(['http://10.0.0.1/a', 'ht\ntp://10.0.0.1/a', '\thttp\r\n:/\t/10.0.0.1/a', 'file:\n///etc/passwd'])(
    'is recognised by its form in a field of any name: %j',
    async (source) => {
      expect(await inChat({ type: 'vendor_image', source })).toMatch(/^400 invalid_image_url/);
    },
  );
});

describe('other parts', () => {
  it('may hold files as data', async () => {
    for (const file_data of [pdf, 'JVBERi0xLjQ=', 'data:text/plain;base64,aGk='])
      expect(await inChat({ type: 'file', file: { filename: 'a: http.pdf', file_data } })).toBe('sent 1');
    const content = [{ type: 'input_file', filename: 'a.pdf', file_data: pdf }];
    expect(await inResponses({ role: 'user', content })).toBe('sent 1');
  });

  it.each([
    ['a file', { type: 'file', file: { file_url: 'http://10.0.0.1/a.pdf' } }, 'file.file_url'],
    ['data of a file', { type: 'file', file: { file_data: 'http://10.0.0.1/a' } }, 'file.file_data'],
    ['a film', { type: 'video_url', video_url: { url: 'http://10.0.0.1/a' } }, 'video_url.url'],
    ['sound', { type: 'audio_url', audio_url: { url: 'file:///a.wav' } }, 'audio_url.url'],
    ['frames', { type: 'video', video: ['https://a.example/1', 'http://10.0.0.1/2'] }, 'video[1]'],
  ])('with a URL that is not public are rejected: %s', async (_name, part, path) => {
    const answer = await inChat(part);
    expect(answer.startsWith(`400 invalid_url messages[0].content[1].${path} '`)).toBe(true);
  });

  it('may hold any URL in text and in the citations of an answer', async () => {
    const cited = { type: 'url_citation', url: 'http://a.example', title: 'http://a.example' };
    const content = [{ type: 'output_text', text: 'http://a.example', annotations: [cited] }];
    expect(await inResponses({ type: 'message', role: 'assistant', content })).toBe('sent 1');
    const message = {
      role: 'user',
      content: [{ type: 'text', text: 'http://10.0.0.1', annotations: [cited] }],
    };
    expect(await outcome(rigOf(), { messages: [message] })).toBe('sent 1');
  });
});

describe('the setting content_urls', () => {
  const reading = (value: unknown) => readSetting({ name: 'content_urls', value });
  const widened = (value: unknown): BillingRig => {
    const read = reading(value);
    if ('problem' in read) throw new Error(read.problem);
    return rigOf(read.row);
  };

  it.each([
    [['http:'], 'http://images.example/cat.png'],
    [['http://10.0.0.7:9000/'], 'http://10.0.0.7:9000/cat.png'],
    [['HTTPS://vllm/'], 'https://vllm/cat.png'],
    [['data:image/svg'], 'data:image/svg+xml,<svg/>'],
    [['data:application/pdf'], pdf],
    [['ms:'], 'ms://file-1'],
  ])('%j allows %s', async (value, url) => {
    expect(await inChat(image(url), widened(value))).toBe('sent 1');
  });

  it.each([
    [['http:'], 'http://10.0.0.7/cat.png'],
    [['http:'], pixel],
    [['http://10.0.0.7/'], 'http://10.0.0.70/cat.png'],
    [['http://10.0.0.7/'], 'http://x@10.0.0.7/cat.png'],
    [[], pixel],
  ])('%j does not allow %s', async (value, url) => {
    expect(await inChat(image(url), widened(value))).toMatch(/^400/);
  });
});
