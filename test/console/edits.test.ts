import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emptyAttributes } from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { physicalTableName } from '../../shared/tables/table-names.ts';
import { enter, startConsoleRig, tokenIn, type ConsoleRig, type Visitor } from './console-rig.ts';
import { put } from './large-relay.ts';

let rig: ConsoleRig;
let visitor: Visitor;
beforeAll(async () => {
  rig = await startConsoleRig();
  visitor = await enter(await rig.serve());
});
afterAll(async () => rig.stop());

const pageOf = async (path: string): Promise<string> => (await visitor.get(path)).text();
/** Where a browser sends the form of a page. */
const sentTo = (page: string): string =>
  new URL(/<form method="post" action="([^"]*)"/.exec(page)?.[1] ?? '', visitor.base).href;

describe('a form', () => {
  it.each(['a\\b', 'a\tb', 'a%2Fb', 'a?b#c', '//a', '100%', 'å b'])(
    'of the customer and of the channel %j is sent to its own page, and to that of no other',
    async (name) => {
      await put(rig.client, 'accounts', [{ account: name }]);
      await put(rig.client, 'channels', [
        { id: name, endpoint: 'https://a.example/v1', models: ['m'], state: true },
      ]);
      for (const path of ['customers', 'channels'].map(
        (each) => `${each}/${encodeURIComponent(name)}/edit`,
      )) {
        const page = await pageOf(path);
        expect(sentTo(page)).toBe(visitor.base + path);
        const sent = await visitor.post(path, { form_token: tokenIn(page), name: 'n', note: 'n' });
        expect([200, 303, 422]).toContain(sent.status);
      }
      expect(rig.faults).toEqual([]);
    },
  );
});

describe('a form of a row that somebody else changed meanwhile', () => {
  const confirmed = async (reply: Response): Promise<string> =>
    (
      await fetch(new URL(reply.headers.get('location') ?? '', visitor.base), {
        headers: { cookie: visitor.cookie },
      })
    )
      .text()
      .then((page) => page.replaceAll(/\s+/g, ' '));
  const seenIn = (page: string): string => /name="seen" value="(\w+)"/.exec(page)?.[1] ?? '';

  it('is refused for a customer, also after a typo in it, and does not switch the customer on again', async () => {
    await put(rig.client, 'accounts', [{ account: 'watched', note: 'old', rpm: 10 }]);
    const path = 'customers/watched/edit';
    const form = await pageOf(path);
    await put(rig.client, 'accounts', [{ account: 'watched', note: 'leaked', rpm: 10, enabled: false }]);
    const fields = { form_token: tokenIn(form), note: 'new', rpm: '10', enabled: 'yes' };

    const typo = await visitor.post(path, { ...fields, seen: seenIn(form), contact: '{' });
    expect(typo.status).toBe(422);
    const corrected = await visitor.post(path, { ...fields, seen: seenIn(await typo.text()) });
    expect(corrected.status).toBe(422);
    const refused = await corrected.text();
    expect(refused).toContain('watched was changed by somebody else meanwhile: look at it again');

    // Whoever goes on all the same reads what that does.
    const again = await visitor.post(path, { ...fields, seen: seenIn(refused) });
    expect(again.status).toBe(303);
    expect(await confirmed(again)).toContain('calls of watched, which are refused now, are answered again');
  });

  it('is refused for the plan of a customer, and does not undo the other edit', async () => {
    const since = '2026-11-01';
    await put(rig.client, 'accounts', [{ account: 'planned', plan: { level: 1, since } }]);
    const path = 'customers/planned/plan';
    const form = await pageOf(path);
    const fields = { form_token: tokenIn(form), level: '1', since, until: '2099-01-01' };
    await put(rig.client, 'accounts', [
      { account: 'planned', plan: { level: 1, since }, note: 'not of the plan' },
    ]);
    expect((await visitor.post(path, { ...fields, seen: seenIn(form) })).status).toBe(303);

    await put(rig.client, 'accounts', [{ account: 'planned' }]);
    const none = { form_token: tokenIn(form), level: '', seen: seenIn(form) };
    for (const sent of [{ ...fields, seen: seenIn(form) }, none]) {
      const reply = await visitor.post(path, sent);
      expect(reply.status).toBe(422);
      const refused = await reply.text();
      expect(refused).toContain('the plan of planned was changed by somebody else meanwhile');
      expect((await visitor.post(path, { ...fields, seen: seenIn(refused) })).status).toBe(303);
    }
  });

  it('is refused for a price that is to begin later', async () => {
    const rule = { id: 7, type: 'token-billing', models: ['m'], input: 1, output: 2 };
    await put(rig.client, 'charges', [rule]);
    const form = await pageOf('charges/7');
    await put(rig.client, 'charges', [{ ...rule, cached_input: 0.1 }]);
    const fields = { type: 'token-billing', models: 'm', input: '3', output: '2', from: '2099-01-01' };
    const reply = await visitor.post('charges/7', {
      ...fields,
      form_token: tokenIn(form),
      seen: seenIn(form),
    });
    expect(reply.status).toBe(422);
    expect(await reply.text()).toContain('rule 7 was changed by somebody else meanwhile');
  });
});

it('refuses a time of a leak that is none before the key is replaced, so that no new key is lost', async () => {
  const hash = 'b'.repeat(64);
  await put(rig.client, 'keys', [{ hash, account: 'acme', hint: 'sk-AbCd...wXyZ', kind: 'api' }]);
  const path = `keys/${hash}/leaked`;
  const form_token = tokenIn(await pageOf(path));
  for (const hours of ['1e400', '1e10', '-1', 'a day']) {
    const reply = await visitor.post(path, { form_token, hours, successor: 'yes' });
    expect([hours, reply.status]).toEqual([hours, 422]);
    expect(await reply.text()).toMatch(/id="hours-error">found .+, wanted a number above 0/);
  }
});

it.each(['1e400', 'Infinity', '0x1F', '1,5', '１'])(
  'refuses %j where a number is wanted, in an account and in a price',
  async (text) => {
    await put(rig.client, 'accounts', [{ account: 'numbers' }]);
    const path = 'customers/numbers/edit';
    const form = await pageOf(path);
    const fields = { form_token: tokenIn(form), enabled: 'yes', rpm: text };
    const seen = /name="seen" value="(\w+)"/.exec(form)?.[1] ?? '';
    const reply = await visitor.post(path, { ...fields, seen });
    expect([reply.status, await reply.text()]).toEqual([422, expect.stringContaining('id="rpm-error"')]);
    const rule = { id: '9', type: 'token-billing', models: 'm', input: text, output: '1' };
    const price = await visitor.post('charges-new', { ...rule, form_token: tokenIn(form) });
    expect([price.status, await price.text()]).toEqual([422, expect.stringContaining('id="input-error"')]);
  },
);

it.each([
  ['acme', 'acme'],
  ['Acme Inc', "'Acme Inc'"],
  ["O'Hara; $(id)", String.raw`'O'\''Hara; $(id)'`],
])('shows commands to copy that are about the customer %j and run nothing else', async (name, word) => {
  await rig.client.send(
    new PutItemCommand({
      TableName: physicalTableName('relay', 'quotas'),
      Item: emptyAttributes({ account: name }),
    }),
  );
  await put(rig.client, 'accounts', [{ account: name }]);
  const page = await pageOf(`statements?${new URLSearchParams({ account: name }).toString()}`);
  const [, shown = ''] = /<pre class="command"><code>([^<]*)/.exec(page) ?? [];
  const text = shown.replaceAll('&#39;', "'").replaceAll('&quot;', '"').replaceAll('&amp;', '&');
  expect(text).toContain(`relay-ops statement ${word} --month `);
});
