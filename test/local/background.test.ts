import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { textStream, textThenSilence } from '../support/upstream-scripts.ts';
import { BackgroundRig } from './background-rig.ts';

let rig: BackgroundRig;

beforeAll(async () => {
  rig = await BackgroundRig.start(['answers', 'cancels', 'streams', 'deletes']);
});
afterAll(() => rig?.stop());

beforeEach(() => rig.upstream.forget());

describe('a background response on the running stack', () => {
  it('is accepted, runs in its own function, and is charged once', async () => {
    rig.upstream.script(textStream('Hello there.'));
    const id = await rig.accepted('answers');
    expect(await rig.ended('answers', id)).toMatchObject({
      status: 'completed',
      background: true,
      output: [{ content: [{ text: 'Hello there.' }] }],
    });
    expect(rig.stack.processes('background')).toHaveLength(1);
    const rows = await rig.money.ledger('answers', 1);
    expect(rows).toMatchObject([{ id: id.replace('resp-', ''), kind: 'settled', endpoint: 'responses' }]);
    expect((await rig.money.settled('answers')).settled).toBe(1);
    const event = rig.stack.lines.filter((line) => line.includes('Hello there.'));
    expect(event).toEqual([]);
  });

  it('that is cancelled stops its upstream, shows what was written, and charges that', async () => {
    rig.upstream.script(textThenSilence('Hello there'));
    const arrived = rig.upstream.nextRequest();
    const id = await rig.accepted('cancels');
    await arrived;
    const cancelled = await rig.call('cancels', `${id}/cancel`, 'POST');
    expect(cancelled.status).toBe(200);
    expect(await cancelled.json()).toMatchObject({ id, status: 'cancelled' });
    const again = await rig.call('cancels', `${id}/cancel`, 'POST');
    expect(await again.json()).toMatchObject({ id, status: 'cancelled' });
    expect(await rig.money.ledger('cancels', 1)).toMatchObject([{ kind: 'settled' }]);
    expect(await rig.ended('cancels', id)).toMatchObject({ status: 'cancelled' });
  });

  it('with stream shows all its events to whoever follows it', async () => {
    rig.upstream.script(textStream('Hello there.'));
    const response = await rig.ask('streams', { stream: true });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const text = await response.text();
    const types = [...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type);
    expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress']);
    expect(types.at(-1)).toBe('response.completed');
    const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.map((_, index) => index));
    const id = /"id":"(resp-\w+)"/.exec(text)?.[1] ?? '';
    const rest = await (await rig.call('streams', `${id}?stream=true&starting_after=2`)).text();
    expect(text.endsWith(rest) && rest !== '').toBe(true);
  });

  it('that is deleted while it runs is gone, and is charged', async () => {
    rig.upstream.script(textThenSilence('Hello there'));
    const arrived = rig.upstream.nextRequest();
    const id = await rig.accepted('deletes');
    await arrived;
    expect((await rig.call('deletes', id, 'DELETE')).status).toBe(200);
    expect((await rig.call('deletes', id)).status).toBe(404);
    expect(await rig.money.ledger('deletes', 1)).toMatchObject([{ kind: 'settled' }]);
    expect((await rig.call('deletes', `${id}/cancel`, 'POST')).status).toBe(404);
  });
});
