/** The table of models: the rules of each known name, and of unknown names. */
import { describe, expect, it } from 'vitest';
import { quirksOf, type CalledChannel } from '../../../shared/upstreams/called-channel.ts';
import { findModelRules } from '../../../shared/upstreams/model-rules.ts';
import {
  defaultQuirks,
  convertRules,
  listRuleFacts,
  parseRuleFact,
  type Quirks,
} from '../../../shared/upstreams/quirks.ts';

const rulesOf = (model: string): Quirks => ({
  ...defaultQuirks,
  ...findModelRules(model, 'max_completion_tokens'),
});

/**
 * Names, then: thinking, how it is disabled, sampling, forced calls, binding, efforts, cache minimum, output maximum.
 */
const claude: [names: string, rules: string][] = [
  ['claude-3-opus-20240229 claude-3-sonnet-20240229', 'none omit samples forces - no-xhigh 1024 4096'],
  [
    'claude-3-haiku-20240307 anthropic.claude-3-haiku-20240307-v1:0',
    'none omit samples forces - no-xhigh 2048 4096',
  ],
  [
    'claude-3-5-sonnet-20240620 claude-3-5-sonnet-20241022 anthropic.claude-3-5-sonnet-20241022-v2:0 anthropic/claude-3.5-sonnet',
    'none omit samples forces - no-xhigh 1024 8192',
  ],
  ['claude-3-5-haiku-20241022 claude-3.5-haiku', 'none omit samples forces - no-xhigh 2048 8192'],
  [
    'claude-3-7-sonnet-20250219 us.anthropic.claude-3-7-sonnet-20250219-v1:0 anthropic/claude-3.7-sonnet:thinking claude-sonnet-4-20250514 claude-sonnet-4-5 claude-sonnet-4-5-20250929 us.anthropic.claude-sonnet-4-5-20250929-v1:0 anthropic/claude-sonnet-4.5',
    'budget omit samples forces - no-xhigh 1024 64000',
  ],
  [
    'claude-opus-4-20250514 us.anthropic.claude-opus-4-20250514-v1:0 claude-opus-4-0 claude-opus-4-1 claude-opus-4-1-20250805 anthropic/claude-opus-4.1',
    'budget omit samples forces - no-xhigh 1024 32000',
  ],
  [
    'claude-haiku-4-5 claude-haiku-4-5-20251001 global.anthropic.claude-haiku-4-5-20251001-v1:0 claude-opus-4-5 claude-opus-4-5-20251101',
    'budget omit samples forces - no-xhigh 4096 64000',
  ],
  ['claude-opus-4-6 anthropic/claude-opus-4.6', 'adaptive omit samples forces - no-xhigh 4096 128000'],
  ['claude-sonnet-4-6 us.anthropic.claude-sonnet-4-6', 'adaptive omit samples forces - no-xhigh 1024 128000'],
  [
    'claude-opus-4-7 us.anthropic.claude-opus-4-7-v1:0 anthropic/claude-opus-4.7 Claude-Opus-4-7',
    'adaptive omit - forces - all 2048 128000',
  ],
  ['claude-opus-4-8 claude-opus-4-8-20260528', 'adaptive omit - forces - all 1024 128000'],
  ['claude-sonnet-4-8', 'adaptive omit samples forces - all 1024 128000'],
  ['claude-mythos-preview claude-fable-preview', 'adaptive always - - - all 2048 128000'],
  ['claude-fable-5 claude-fable-5-20260609 claude-mythos-5', 'adaptive always - - - all 512 128000'],
  [
    'claude-fable-5-1 anthropic/claude-fable-5.1 us.anthropic.claude-fable-5-1-v1:0 claude-fable-5-2 claude-mythos-5-2 claude-opus-5-5 claude-opus-5.5 us.anthropic.claude-opus-5-5-v1:0 claude-opus-5-5-20260922 claude-opus-6 claude-opus-10',
    'adaptive always - - binds all 512 128000',
  ],
  [
    'claude-sonnet-5 claude-sonnet-5-20260701 global.anthropic.claude-sonnet-5-v1:0 claude-haiku-5',
    'adaptive disabled - forces - all 1024 128000',
  ],
  ['claude-opus-5 anthropic/claude-opus-5 claude-opus-5-1', 'adaptive disabled - forces - all 512 128000'],
  [
    'claude-sonnet-5-5 anthropic/claude-sonnet-5.5 claude-sonnet-6',
    'adaptive between_tools - - binds all 1024 128000',
  ],
  [
    'claude-haiku-5-5 claude-haiku-5-5-20261007 claude-haiku-6-1',
    'adaptive disabled - forces binds all 1024 128000',
  ],
  ['house-model glm-5 MiniMax-M3 mistral-large', 'adaptive omit samples forces - all 1024 -'],
];

function claudeRules(model: string): string {
  const rules = rulesOf(model);
  const efforts = (rules.efforts ?? ['low', 'medium', 'high', 'xhigh', 'max']).filter(
    (each) => each !== 'none',
  );
  return [
    rules.thinkingForm,
    rules.thinkingOff,
    rules.sampling === 'none' ? '-' : 'samples',
    rules.supportsForcedCalls ? 'forces' : '-',
    rules.bindsThinking ? 'binds' : '-',
    efforts.length === 5 ? 'all' : efforts.includes('xhigh') ? efforts.join('+') : 'no-xhigh',
    rules.cacheMinTokens,
    rules.outputTokensMax ?? '-',
  ].join(' ');
}

/** Names, then: efforts, sampling, limit field, required echoes, last turn. */
const others: [names: string, rules: string][] = [
  ['gpt-3.5-turbo gpt-4 gpt-4o gpt-4o-mini gpt-4.1 gpt-5-chat-latest', 'no any - - any'],
  ['chatgpt-4o-latest gemini-2.0-flash qwen3-max llama-4', '- any - - any'],
  [
    'gpt-5 gpt-5-2025-08-07 gpt-5-mini gpt-5-nano',
    'minimal+low+medium+high without_reasoning max_completion_tokens - any',
  ],
  ['gpt-5.1-chat-latest', 'medium any - - any'],
  ['gpt-5-pro', 'high without_reasoning max_completion_tokens - any'],
  ['gpt-5.2-pro', 'medium+high+xhigh without_reasoning max_completion_tokens - any'],
  ['gpt-5.1', 'none+low+medium+high without_reasoning max_completion_tokens - any'],
  ['gpt-5.2 gpt-5.4 gpt-5.5', 'none+low+medium+high+xhigh without_reasoning max_completion_tokens - any'],
  [
    'gpt-5.6 openai/gpt-5.6 us.openai.gpt-5.6 gpt-6-sol gpt-6-luna gpt-6 gpt-6.1-terra',
    'none+low+medium+high+xhigh+max without_reasoning max_completion_tokens - any',
  ],
  [
    'gpt-5-codex gpt-5.1-codex o1 o3 o3-pro o4-mini openai/o3',
    'low+medium+high without_reasoning max_completion_tokens - any',
  ],
  ['gpt-5.1-codex-max gpt-5.3-codex', 'low+medium+high+xhigh without_reasoning max_completion_tokens - any'],
  [
    'gpt-6-astra gpt-6-rosalind gpt-6.1-sol gpt-6.2-astra gpt-6.2-sol global.openai.gpt-6.2-sol',
    'low+medium+high+xhigh+max without_reasoning max_completion_tokens - any',
  ],
  ['gpt-oss-120b openai.gpt-oss-120b-1:0', 'low+medium+high any - - any'],
  ['gemini-2.5-flash gemini-2.5-flash-lite', 'none+minimal+low+medium+high any - - any'],
  ['gemini-2.5-pro models/gemini-2.5-pro', 'minimal+low+medium+high any - - any'],
  ['gemini-3-pro-preview gemini-3.1-pro-preview', 'low+medium+high any - thought_signature any'],
  ['gemini-3-flash-preview gemini-3.5-flash', 'minimal+low+medium+high any - thought_signature any'],
  ['gemini-3.5-flash-lite', 'minimal+low+medium+high any - thought_signature user'],
  [
    'gemini-3.6-flash gemini-3.8-flash gemini-4-argon gemini-4-carbon gemini-flash-latest google/gemini-3.6-flash',
    'low+medium+high any - thought_signature user',
  ],
  [
    'deepseek-v4-pro deepseek-flash deepseek/deepseek-flash deepseek-chat deepseek-reasoner',
    'none+minimal+low+medium+high+xhigh+max any - reasoning_content any',
  ],
  ['gemini-4-hydrogen google/gemini-4-hydrogen', 'low+medium+high+xhigh any - thought_signature user'],
  ['kimi-k2.6 moonshotai/kimi-k2.7', '- any - reasoning_content any'],
  ['kimi-k3 moonshotai/kimi-k3.1-pro k3 coding/k3', 'low+high+max any - reasoning_content any'],
  ['glm-5.3 zai/glm-5.3-flash', 'low+high+max any - - any'],
  ['glm-5.2', '- any - - any'],
  ['mistral-small-latest mistralai/mistral-medium-3-5', 'none+high any - - any'],
];

function otherRules(model: string): string {
  const { efforts, sampling, limitField = '-', wantsBack = '-', lastTurnRole: lastTurn } = rulesOf(model);
  const known = efforts === undefined ? '-' : efforts.join('+') || 'no';
  return [known, sampling, limitField, wantsBack, lastTurn].join(' ');
}

describe('the table of models', () => {
  it.each(claude)('lists for %s', (names, rules) => {
    for (const name of names.split(' ')) expect([name, claudeRules(name)]).toEqual([name, rules]);
  });

  it.each(others)('lists for %s', (names, rules) => {
    for (const name of names.split(' ')) expect([name, otherRules(name)]).toEqual([name, rules]);
  });

  it('binds the prefix from GPT-6.2 on, but not for earlier GPT models', () => {
    const bound = ['gpt-6.2-sol', 'openai.gpt-6.2-astra', 'gpt-6.10', 'gpt-7', 'gpt-10-sol'];
    const free = [
      'gpt-6',
      'gpt-6-astra',
      'gpt-6.1-terra',
      'gpt-5.6',
      'gpt-4.1',
      'gpt-35-turbo',
      'o3',
      'claude-opus-5-5',
    ];
    expect([...bound, ...free].filter((name) => rulesOf(name).bindsPrefix)).toEqual(bound);
  });

  it('gives unknown models of a vendor the rules of its newest models', () => {
    const newest = {
      sampling: 'none',
      supportsForcedCalls: false,
      thinkingOff: 'omit',
      bindsThinking: false,
    };
    expect(rulesOf('claude-lyra-7')).toMatchObject(newest);
    expect(rulesOf('gpt-7-orion')).toEqual(rulesOf('gpt-6.2-astra'));
    expect(rulesOf('deepseek-comet')).toEqual(rulesOf('deepseek-flash'));
    expect(rulesOf('gemini-5-ion')).toEqual(rulesOf('gemini-4-argon'));
    expect(rulesOf('claude-opus-7')).toEqual(rulesOf('claude-opus-5-5'));
  });
});

const channel: CalledChannel = {
  type: 'openai',
  endpoint: 'https://up.test/v1',
  mapper: { house: 'claude-opus-5-5' },
  connect_seconds: 5,
  params: { set: {}, drop: [], allow: [], stream: true, include_usage: true },
};
const withRules = (params: object): CalledChannel => ({
  ...channel,
  params: { ...channel.params, ...params },
});

describe('the rules of a row', () => {
  it("override the table and the row's general settings, by the public or the upstream name", () => {
    const row = withRules({
      efforts: ['low'],
      model_rules: {
        house: { efforts: ['max'] },
        'claude-*': { efforts: ['high'], sampling: 'any', limit_field: 'max_tokens' },
      },
    });
    expect(quirksOf(row, 'house')).toMatchObject({
      efforts: ['max'],
      sampling: 'any',
      limitField: 'max_tokens',
      supportsForcedCalls: false,
    });
    expect(quirksOf(row, 'claude-sonnet-5')).toMatchObject({ efforts: ['high'], sampling: 'any' });
    expect(quirksOf(row, 'gpt-5')).toMatchObject({ efforts: ['low'], sampling: 'without_reasoning' });
  });

  it('apply by the longest pattern, an exact name before all patterns, each rule separately', () => {
    const row = withRules({
      model_rules: {
        'gpt-7-orion': { stop: true },
        '*': { stop: false, system: 'first' },
        'gpt-7-o*': { sampling: 'one', stop: false },
      },
    });
    expect(quirksOf(row, 'gpt-7-orion')).toMatchObject({
      supportsStop: true,
      sampling: 'one',
      systemPosition: 'first',
    });
  });

  it('are converted to facts and back to rules', () => {
    const quirks: Partial<Quirks> = {
      efforts: ['low', 'max'],
      supportsForcedCalls: false,
      sampling: 'one',
      cacheMinTokens: 0,
      limitField: 'max_tokens',
    };
    const facts = listRuleFacts(quirks);
    expect(facts).toContain('efforts:low+max');
    expect(convertRules(Object.assign({}, ...facts.map(parseRuleFact)))).toEqual(quirks);
    expect(convertRules(parseRuleFact(listRuleFacts({ efforts: [] })[0] ?? ''))).toEqual({ efforts: [] });
    expect(['keeps_state', 'speaks:responses', 'sampling:all', 'constructor:1'].map(parseRuleFact)).toEqual([
      {},
      {},
      {},
      {},
    ]);
  });
});
