import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startVendors, type Vendors } from '../../../infra/local/vendors/vendors.ts';
import { systemClock } from '../../../shared/adapters/system/node-ports.ts';
import { createHttpsTransport } from '../../../shared/adapters/transport/https-transport.ts';
import type { Capabilities } from '../../../shared/config/rows/capabilities.ts';
import { carryOutProbe, planProbe } from '../../../shared/operate/channels/probe-channel.ts';
import { planSync } from '../../../shared/operate/channels/sync-models.ts';
import { operatorRig } from '../../support/operator-rig.ts';

let vendors: Vendors;
beforeAll(async () => {
  vendors = await startVendors();
});
afterAll(async () => vendors.close());

/** Probes a double as a channel with these attributes. */
async function probe(vendor: string, model: string, attributes: Record<string, unknown> = {}) {
  const row = { id: 'a', endpoint: vendors.url(vendor), models: [model], state: true, ...attributes };
  const rig = operatorRig({ rows: { channels: [row] } });
  const upstreams = createHttpsTransport({ local: true });
  const ports = { ...rig.ports, upstreams, clock: systemClock };
  const before = vendors.requests(vendor).length;
  const result = await carryOutProbe(ports, await planProbe(ports, { id: 'a' }));
  const asked = vendors.requests(vendor).length - before;
  return { ...result, asked, writes: rig.writes };
}

const fewEfforts = ['minimal', 'low', 'medium', 'high'];
const thinkingEfforts = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
const everyEffort = ['none', ...thinkingEfforts];
const everything = {
  tools: true,
  parallel_tools: true,
  json_schema: true,
  images: true,
  usage_streaming: true,
  system_anywhere: true,
} satisfies Capabilities;

/** Derived from the rules of the doubles. Without a rule, a double supports the ability. */
const doubles: {
  vendor: string;
  model: string;
  attributes?: Record<string, unknown>;
  can: Capabilities;
  /** Known rules of the model that differ, written so that they apply. */
  rules?: object;
  warning?: string;
}[] = [
  {
    // tools-need-responses, efforts
    vendor: 'openai',
    model: 'gpt-5.6',
    attributes: { max_tokens_field: 'max_completion_tokens' },
    can: {
      ...everything,
      efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
      dialects: ['responses'],
    },
    warning: 'dialect: is chat, but the probe found only responses',
  },
  {
    // The rules about reasoning are not for this model.
    vendor: 'openai',
    model: 'gpt-4.1',
    can: { ...everything, efforts: everyEffort, dialects: ['chat', 'responses'] },
    rules: { efforts: everyEffort },
  },
  {
    vendor: 'gemini',
    model: 'gemini-3-pro-preview',
    attributes: { type: 'gemini' },
    can: { ...everything, efforts: fewEfforts, dialects: ['chat'] },
    rules: { efforts: fewEfforts },
  },
  {
    // response-format
    vendor: 'deepseek',
    model: 'deepseek-v4-pro',
    // It accepts the effort none, but thinks anyway.
    can: { ...everything, json_schema: false, efforts: thinkingEfforts, dialects: ['chat'] },
    rules: { efforts: thinkingEfforts },
  },
  {
    // The schema has efforts from low to max; this model can't stop thinking.
    vendor: 'anthropic',
    model: 'claude-opus-5-5',
    attributes: { type: 'anthropic' },
    can: { ...everything, efforts: ['low', 'medium', 'high', 'xhigh', 'max'], dialects: ['messages'] },
  },
  {
    // The same, but it thinks only on request.
    vendor: 'anthropic',
    model: 'claude-sonnet-4-6',
    attributes: { type: 'anthropic' },
    can: {
      ...everything,
      efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
      dialects: ['messages'],
    },
    rules: { efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] },
  },
  {
    // It has budgets instead of efforts, and the dialect converts between them.
    vendor: 'anthropic',
    model: 'claude-haiku-4-5',
    attributes: { type: 'anthropic' },
    can: { ...everything, efforts: everyEffort, dialects: ['messages'] },
  },
  {
    // The row leaves no room for a budget, so the dialect sends none.
    vendor: 'anthropic',
    model: 'claude-haiku-4-5',
    attributes: { type: 'anthropic', params: { max_output_tokens: 1500 } },
    can: { ...everything, efforts: [], dialects: ['messages'] },
  },
  {
    // system-first; unknown-field, for reasoning_effort
    vendor: 'picky',
    model: 'picky',
    can: { ...everything, system_anywhere: false, efforts: [], dialects: ['chat'] },
    rules: { system: 'first' },
  },
  {
    // The row was created for a chat-only address, but its type now speaks another dialect.
    vendor: 'picky',
    model: 'picky',
    attributes: { type: 'anthropic', params: { system: 'first' } },
    can: { ...everything, system_anywhere: false, efforts: [], dialects: ['chat'] },
    warning: 'dialect: is messages, but the probe found only chat',
  },
];

describe('the probe of each double', () => {
  it.each(doubles)(
    "reports the rules of $vendor's $model",
    async ({ vendor, model, attributes, can, rules, warning }) => {
      const found = await probe(vendor, model, attributes);
      expect(found.can).toEqual({ model, ...can });
      expect(found.warnings).toEqual(warning === undefined ? [] : [warning]);
      expect(found.unasked).toEqual([]);
      expect(found.rules).toEqual(rules ?? {});
      expect(found.sent).toBe(found.asked);
      expect(found.asked).toBeLessThanOrEqual(12);
      expect(found.writes).toEqual(['update channels a']);
    },
  );

  it('is rejected for Bedrock, whose requests only the functions sign', async () => {
    const attributes = { type: 'bedrock', region: 'us-east-1' };
    await expect(probe('bedrock', 'us.anthropic.claude-opus-5-5-v1:0', attributes)).rejects.toThrow(
      'use the IAM role of the functions, which this command does not have',
    );
    expect(vendors.requests('bedrock')).toEqual([]);
  });
});

describe('the probe of a failing double', () => {
  const failing = async (vendor: string, model: string, attributes: Record<string, unknown> = {}) => {
    const row = { id: 'a', endpoint: vendors.url(vendor), models: [model], state: true, ...attributes };
    const { ports: rig, writes } = operatorRig({ rows: { channels: [row] } });
    const upstreams = createHttpsTransport({ local: true });
    const secrets = { ...rig.secrets, read: async () => 'wrong-key-0123456789' };
    const ports = { ...rig, secrets, upstreams, clock: systemClock };
    const error = await carryOutProbe(ports, await planProbe(ports, { id: 'a' })).catch(
      (reason: unknown) => reason,
    );
    expect(writes).toEqual([]);
    return (error as Error).message;
  };
  const secret = 'env:KEY';

  it.each([
    ['openai', 'gpt-4.1', {}],
    ['anthropic', 'claude-opus-5-5', { type: 'anthropic' }],
  ])('reports that %s rejects the key, without showing the key', async (vendor, model, attributes) => {
    const message = await failing(vendor, model, { ...attributes, secret });
    expect(message).toMatch(
      /^nothing was written: the upstream rejects the API key \((chat|messages): status 40[01]: /,
    );
    expect(message).not.toContain('wrong-key');
  });

  it.each([
    ['openai', {}, /chat: status 404: .*model `missing` does not exist/],
    ['deepseek', {}, /chat: status 400: .*Model Not Exist/],
    ['anthropic', { type: 'anthropic' }, /messages: status 404: .*model: missing/],
  ])('reports the answer of %s for a missing model', async (vendor, attributes, said) => {
    const message = await failing(vendor, 'missing', attributes);
    expect(message).toContain('nothing was written: the upstream supports no known dialect');
    expect(message).toMatch(said);
  });
});

describe('the model list of a double', () => {
  it('lists the abilities of its models, so that a sync writes only what differs from the table', async () => {
    const models = ['claude-opus-5-5', 'claude-haiku-5-5', 'claude-haiku-4-5', 'claude-lyra-7'];
    const row = { id: 'a', type: 'anthropic', endpoint: vendors.url('anthropic'), models, state: true };
    const rig = operatorRig({ rows: { channels: [row] } });
    const ports = { ...rig.ports, upstreams: createHttpsTransport({ local: true }), clock: systemClock };
    const plan = await planSync(ports, { id: 'a', only: [], keep: true });
    const rules = { thinking: 'budget', max_output_tokens: 48_000 };
    expect(plan).toMatchObject({
      changes: [{ attributes: { params: { model_rules: { 'claude-lyra-7': rules } } } }],
    });
    expect(plan.effect).toHaveLength(2);
  });
});
