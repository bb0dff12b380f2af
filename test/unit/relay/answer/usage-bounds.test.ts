import { expect, test } from 'vitest';
import { computeUsageBounds } from '../../../../shared/relay/answer/meter.ts';
import type { ChatCall, DispatchReport } from '../../../../shared/relay/call/call.ts';
import { buildTariff } from '../../../../shared/billing/tariff.ts';
import type { TurnState } from '../../../../shared/wire/turn-state.ts';

const tariff = buildTariff({ models: ['m'], rulesOf: () => [], defaultOutputTokens: 1, nowMs: 0 });

test('the state restored into earlier turns counts as input that an upstream may have read', () => {
  const request = { model: 'm', messages: [{ role: 'user', content: 'go on' }] };
  const origin = { dialect: 'chat', channel: 'c', secret: '', model: 'm' };
  const boundOf = (reasoning: string): number => {
    const state: TurnState = { origin, callIds: [], parts: [{ opaque: { reasoning_content: reasoning } }] };
    const call = { unknown: {}, tariff, model: { base: 'm' } };
    const asked = { ...call, states: new Map([[{ role: 'assistant' }, state]]) } as unknown as ChatCall;
    const report = { request, model: 'm', channel: undefined, sent: {} } as unknown as DispatchReport;
    return computeUsageBounds(asked, report, { inputTokens: () => 1 }).inputMax();
  };
  expect(boundOf('想'.repeat(20_000)) - boundOf('')).toBeGreaterThanOrEqual(60_000);
});

test('the output limit comes from the model rule of a row before the row itself', () => {
  const call = {
    unknown: {},
    states: new Map(),
    tariff,
    model: { base: 'm' },
  };
  const outputMax = (params: object): number => {
    const channel = { mapper: {}, params: { allow: [], max_output_tokens: 900, ...params } };
    const report = { request: { messages: [] }, model: 'm', channel, sent: { outputTokensMax: 1_200 } };
    const bill = { inputTokens: () => 1 };
    return computeUsageBounds(call as unknown as ChatCall, report as unknown as DispatchReport, bill)
      .outputMax;
  };
  expect(outputMax({})).toBeLessThan(1_200);
  expect(outputMax({ model_rules: { m: { max_output_tokens: 5_000 } } })).toBeGreaterThanOrEqual(1_200);
});
