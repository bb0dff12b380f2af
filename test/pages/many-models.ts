import type { Settings } from '../../shared/config/settings.ts';
import type { Snapshot } from '../../shared/config/snapshot.ts';

const families: [prefix: string, count: number][] = [
  ['gpt-', 40],
  ['claude-sonnet-', 24],
  ['gemini-', 30],
  ['qwen', 48],
  ['deepseek-', 18],
  ['llama-', 22],
  ['mistral-', 20],
  ['Qwen/Qwen3-', 30],
  ['deepseek-ai/DeepSeek-R1-Distill-Qwen-', 24],
  ['meta-llama/Llama-4-Scout-17B-16E-Instruct-', 20],
  ['doubao-', 20],
];

/** 300 models: long names, vendors, tiers, prices of caches, prices per call, free ones, one without a price. */
export function manyModels(nowMs: number): { snapshot: Partial<Snapshot>; settings: Partial<Settings> } {
  const byCall = 'flux-pro-1.1-ultra';
  const models = [
    ...families.flatMap(([prefix, count]) => Array.from({ length: count }, (_, at) => `${prefix}${at + 1}`)),
    byCall,
    'whisper-large-v3-turbo',
    'text-embedding-3-large',
    'a-model-with-a-name.that:goes/on-and-on_without.any:place-to-break_it-until-the-limit-of-one-hundred-and-twenty-eight-char',
  ];
  const priced = { type: 'token-billing' as const, anonymous: false };
  const charges = models.slice(0, -2).map((model, at) =>
    Object.assign({}, priced, {
      id: at + 1,
      models: [model],
      input: ((at % 9) + 1) / 1000,
      output: ((at % 7) + 2) / 250,
      cached_input: at % 3 > 0 ? ((at % 9) + 1) / 10_000 : undefined,
      cache_write: at >= 40 && at < 64 ? ((at % 9) + 1) / 800 : undefined,
      tiers: at % 60 === 5 ? [{ above: 200_000, input: 0.02, output: 0.05 }] : undefined,
    }),
  );
  const nextYear = Date.UTC(new Date(nowMs).getUTCFullYear() + 1, 0, 1);
  const item = (id: string, name: string, value: number, ...covered: string[]) => ({
    id,
    name,
    icon: '',
    value,
    models: covered,
  });
  return {
    snapshot: {
      models,
      charges: [
        ...charges.filter(({ models: [model] }) => model !== byCall),
        { ...priced, type: 'times-billing', id: 900, models: [byCall], input: 0, output: 0.4 },
        {
          ...priced,
          id: 901,
          models: ['gpt-1', 'gpt-2'],
          input: 0.0015,
          output: 0.006,
          service_tiers: { flex: 0.5 },
          from: nextYear,
        },
      ],
      plans: [
        {
          level: 1,
          price: 29,
          items: [
            item('chat', '日常对话', 1000, 'gpt-1', 'qwen1'),
            item('all', 'نماذج كبيرة', -1, 'deepseek-1'),
          ],
        },
        {
          level: 2,
          price: 99,
          items: [item('x', 'Everything', 20_000, 'gpt-1', 'claude-sonnet-1', 'gemini-1')],
        },
      ],
    },
    settings: {
      subscriptionEnabled: true,
      contact: 'support@relay.example · 微信 relay-help',
      notices: [
        {
          text: '系统维护：12 月 6 日 02:00–04:00 (UTC)，期间 <b>qwen</b> 可能中断。',
          untilMs: nowMs + 9e8,
          models: ['qwen1', 'qwen2'],
        },
        { text: 'سيتم إيقاف النموذج القديم قريبًا' },
      ],
      aliases: [{ name: 'fast', models: ['gpt-3', 'gemini-2'], onContextLength: false }],
    },
  };
}
