import { describe, expect, it } from 'vitest';
import { readSetting } from '../../../shared/config/setting-rows.ts';

const good = {
  live: true,
  webhook_secret: 'ssm:/relay/relay/hook',
  link_secret: ['ssm:/relay/relay/old', 'ssm:/relay/relay/new'],
  rates: { usd: 7.1, jpy: '0.048', kwd: 23 },
};
const read = (changes: object) =>
  readSetting({ name: 'payments', value: { stripe: { ...good, ...changes } } }, { local: false });

describe('the setting payments', () => {
  it('keeps rates exactly as they were written, and secrets as lists', () => {
    expect(read({ live: 'true' })).toEqual({
      row: {
        payments: {
          stripe: {
            live: true,
            webhookSecrets: ['ssm:/relay/relay/hook'],
            linkSecrets: ['ssm:/relay/relay/old', 'ssm:/relay/relay/new'],
            rates: { usd: '7.1', jpy: '0.048', kwd: '23' },
            unsigned: 'park',
          },
        },
      },
    });
  });

  it.each<[object, RegExp]>([
    [{ live: undefined }, /^value\.stripe\.live: found nothing/],
    [{ live: 'yes' }, /^value\.stripe\.live: found "yes", wanted true or false/],
    [
      { webhook_secret: 'whsec_canary' },
      /^value\.stripe\.webhook_secret: found a value that is not a reference(?!.*canary)/,
    ],
    [{ webhook_secret: [] }, /^value\.stripe\.webhook_secret: /],
    [{ link_secret: 'env:LINKS' }, /^value\.stripe\.link_secret: found an env: reference/],
    [{ link_secret: undefined }, /^value\.stripe\.link_secret: found nothing/],
    [{ rates: { usd: 0 } }, /^value\.stripe\.rates\.usd: found 0, wanted yuan for one unit/],
    [{ rates: { usd: -7 } }, /^value\.stripe\.rates\.usd: found -7/],
    [{ rates: { usd: 7.1234567 } }, /at most 6 decimals/],
    [{ rates: { usd: 'seven' } }, /^value\.stripe\.rates\.usd: found "seven"/],
    [{ rates: { USD: 7 } }, /^value\.stripe\.rates/],
    [{ rates: { ugx: 0.002 } }, /^value\.stripe\.rates\.ugx: found a rate, wanted no rate for it/],
    [{ unsigned: 'grant' }, /^value\.stripe\.unsigned: found "grant", wanted "park" or "ignore"/],
    [{ secret_key: 'x' }, /^value\.stripe\.secret_key: found, but not known here/],
  ])('%j is refused', (changes, problem) => {
    expect(read(changes)).toMatchObject({ problem: expect.stringMatching(problem) as unknown });
  });
});
