/** Events of the relay and its customers before a task of docs/daily-tasks.md, and the required state after it. */
import { findBin } from '../../../shared/billing/time-sketch.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { errorStatus } from '../../support/upstream-failures.ts';
import { answers, type DailyRelay } from './relay.ts';

interface Reconciled {
  model: string;
  bought: string | null;
}

export type Happening = (relay: DailyRelay) => Promise<void>;

/** By the task's heading. */
export const happenings: Readonly<Record<string, Happening>> = {
  'A vendor is down': async ({ main }) => main.script(errorStatus(503)),

  'Why did this call fail?': async (relay) => {
    for (const upstream of [relay.main, relay.reserve]) upstream.script(errorStatus(503));
    const { id, status } = await relay.call('globex');
    expect(status).toBe(502);
    for (const upstream of [relay.main, relay.reserve]) upstream.script(answers);
    relay.named['ID'] = id.slice(0, 13);
    await logged(relay, '--status failed');
    await vi.waitFor(async () => {
      expect(await relay.quietly('request show $ID')).toContain('(ledger)');
    }, within);
  },

  '"It was slow at 14:05"': async (relay) => {
    relay.main.script(async (call, reply) => {
      await sleep(5_200);
      await answers(call, reply);
    });
    relay.named['ID'] = (await relay.call('globex', 'gpt-4o-mini')).id;
    relay.main.script(answers);
    const [from, to] = [-300_000, 300_000].map((ms) => new Date(Date.now() + ms).toISOString());
    Object.assign(relay.named, { FROM: from, TO: to });
    await logged(relay, '--status slow');
    await summed(relay, 'globex');
  },

  'Why a 429?': async (relay) => {
    // It has 1 yuan, and such a prompt costs more.
    const { id, status } = await relay.call('initech', 'gpt-4o', 'Hello! '.repeat(60_000));
    expect(status).toBe(429);
    relay.named['ID'] = id;
    await logged(relay, '--status 429', 'initech');
  },

  'Refund one call': async (relay) => {
    // Both channels have just failed.
    await relay.answered('globex');
    const { id } = await relay.call('globex');
    Object.assign(relay.named, { ID: id, TYPO: `${id.slice(0, -1)}${id.endsWith('z') ? 'y' : 'z'}` });
    await summed(relay, 'globex');
  },

  'A new model in five minutes': async (relay) => {
    relay.named['VENDOR'] = relay.main.endpoint;
    expect(await relay.call('globex', 'gpt-5')).toMatchObject({ status: 404 });
    await logged(relay, '--model gpt-5 --status refused');
  },

  'Roll back a bad edit': async (relay) => {
    const [newest] = JSON.parse(await relay.quietly('version list --json')) as { version: number }[];
    relay.named['VERSION'] = String(newest?.version);
    const row = { id: 1, type: 'token-billing', models: ['gpt-4o'], input: '0,018', output: 0.072 };
    await relay.keep('charges', [row]);
  },

  'Who spends most?': async (relay) => {
    await relay.answered('initech');
    await Promise.all(['globex', 'initech'].map((account) => summed(relay, account)));
  },

  'An invoice that does not match': async (relay) => {
    relay.write('empty.csv', 'Model,Amount\nnone,0\n');
    const own = JSON.parse(
      await relay.quietly('reconcile main empty.csv --month $MONTH --json'),
    ) as Reconciled[];
    const bought = Number(own.find(({ model }) => model === 'gpt-4o')?.bought);
    const invoice = `Model,Amount\ngpt-4o,${2 * bought}\ngpt-4o-mini,0.05\nembedding-3,0.1\n`;
    relay.named['INVOICE'] = invoice;
    relay.write('invoice.csv', invoice);
  },

  'A leaked key': async (relay) => {
    relay.named['KEY'] = hintOf(await relay.quietly('key list --account acme --json'));
    await relay.answered('acme');
    await summed(relay, 'acme');
  },

  'Move a key to another account': newKey,
  'Give a key a budget': newKey,
  'Hide a model from a customer': newKey,

  'The price of one model of a shared rule': async (relay) =>
    relay.keep('charges', [
      { id: 20, type: 'token-billing', models: ['twin-one', 'twin-two'], input: 0.001, output: 0.004 },
    ]),
};

async function newKey(relay: DailyRelay): Promise<void> {
  const made = JSON.parse(await relay.quietly('key new globex --json')) as { key: string; hint: string };
  Object.assign(relay.named, { movedKey: made.key, KEY: made.hint });
}

/** By the task's heading. */
export const outcomes: Readonly<Record<string, Happening>> = {
  'A new customer with 50 yuan': async (relay) => relay.answered('acme'),
  'A vendor is down': async ({ main }) => main.script(answers),
  // Functions look for a new version every ten seconds; this one has both models, and the vendor's new key.
  'Make a model free on purpose': async (relay) => {
    for (const model of ['llama3', 'gpt-5']) await relay.answered('globex', model);
    expect(relay.main.requests.at(-1)?.headers.authorization).toBe('Bearer vendor-secret-2');
  },
  'Hide a model from a customer': async (relay) =>
    expect((await relay.call('moved', 'gpt-4o')).status).toBe(403),
  'Announce a notice': async (relay) => relay.announced('Maintenance tomorrow from 05:00 to 06:00 UTC'),
  // Functions cache keys for half a minute, so the key's state is checked instead.
  'A leaked key': async (relay) => refused(relay, 'acme', 'disabled'),
  'Move a key to another account': async (relay) =>
    expect((await relay.check('moved')).screen).toContain('of account acme'),
  'Close an account': async (relay) => refused(relay, 'initech', 'disabled'),
};

/** Additional events for walks. */
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
  },
};

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

/** Waits until a failed channel is called again. */
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
      [findBin(500)]: Math.floor(calls * 0.6),
      [findBin(1000)]: Math.floor(calls * 0.3),
      [findBin(2000)]: back < 9 ? Math.floor(calls * 0.1) : 0,
      expires: Math.floor(startMs / 1000) + 172_800,
    };
  });
  await relay.keep('daily', rows);
}

const within = { timeout: 20_000, interval: 200 };

async function refused(relay: DailyRelay, account: string, why: string): Promise<void> {
  expect(await relay.check(account)).toMatchObject({ code: 1, screen: expect.stringContaining(why) });
}

/** Waits until the sums contain all calls of an account. A call is closed after its answer has ended. */
async function summed(relay: DailyRelay, account: string): Promise<void> {
  const closed = async (): Promise<void> => {
    const shown = JSON.parse(await relay.quietly(`customer show ${account} --json`)) as { open: number };
    expect(shown.open).toBe(0);
  };
  await vi.waitFor(closed, within);
  await relay.quietly(`statement ${account} --month $MONTH --json`);
}

/** Waits until the log contains a request of a customer. */
const logged = (relay: DailyRelay, which: string, account = 'globex') =>
  vi.waitFor(async () => {
    const found = await relay.quietly(`request list --account ${account} --since 5m ${which} --json`);
    expect(JSON.parse(found)).not.toEqual([]);
  }, within);

const hintOf = (keys: string): string => (JSON.parse(keys) as { hint: string }[])[0]?.hint ?? '';
