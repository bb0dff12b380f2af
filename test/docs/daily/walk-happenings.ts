/** What walks need beside the happenings of their tasks, and what has to be so after them. */
import { expect, vi } from 'vitest';
import { outcomes, summed, type Happening } from './happenings.ts';
import type { DailyRelay } from './relay.ts';

/** By the task's heading. */
export const beforeWalks: Readonly<Record<string, Happening>> = {
  'A vendor is down': async (relay) => {
    await anHour(relay);
    for (let failed = 0; failed < 4; failed += 1) await relay.call('globex', 'gpt-4o-mini');
  },

  // The mark in the row follows the edit.
  'Roll back a bad edit': async (relay) => {
    const marked = async () => expect(await relay.row('charges', 1)).toHaveProperty('_problem');
    await vi.waitFor(marked, { timeout: 20_000, interval: 200 });
  },

  "A month's statement": async (relay) => summed(relay, 'globex'),

  'Announce a notice': async (relay) => {
    relay.named['GLOBEX_KEY'] = String(relay.named['globexKey']);
    await outcomes['Announce a notice']?.(relay);
  },
};

/** By the task's heading. */
export const afterWalks: Readonly<Record<string, Happening>> = {
  ...outcomes,
  'A new customer with 50 yuan': async (relay) => {
    relay.named['acmeKey'] = String(relay.named['shownKey']);
    await relay.answered('acme');
  },
  'A vendor is down': async (relay) => {
    await outcomes['A vendor is down']?.(relay);
    await rested(relay);
  },
  'Why did this call fail?': async (relay) => rested(relay),
};

/** Waits until a channel that has failed is called again. */
const rested = (relay: DailyRelay): Promise<void> => relay.answered('globex', 'gpt-4o-mini');

/** Sums of an hour's calls, so that plots have something to draw. */
async function anHour(relay: DailyRelay): Promise<void> {
  const rows = Array.from({ length: 60 }, (_, back) => {
    const startMs = Date.now() - (back + 1) * 60_000;
    const minute = new Date(startMs).toISOString().slice(0, 16);
    const calls = Math.round(60 + 25 * Math.sin(back / 9) + 9 * Math.sin(back * 2.7));
    return {
      id: `minutes#${minute.slice(0, 10)}`,
      period: `minute#${minute}`,
      calls,
      failures: back < 4 ? 9 - 2 * back : Number(back % 17 === 3),
      prompt_tokens: calls * 2_300,
      completion_tokens: calls * 410,
      charged: Number((calls * 0.0142).toFixed(6)),
      bought: Number((calls * 0.0089).toFixed(6)),
      bought_charged: Number((calls * 0.0142).toFixed(6)),
      bought_calls: calls,
      first_content_500: Math.floor(calls * 0.6),
      first_content_1000: Math.floor(calls * 0.3),
      first_content_2000: back < 9 ? Math.floor(calls * 0.1) : 0,
      expires: Math.floor(startMs / 1000) + 172_800,
    };
  });
  await relay.keep('daily', rows);
}
