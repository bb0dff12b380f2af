import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
