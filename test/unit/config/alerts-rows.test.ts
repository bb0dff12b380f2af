import { describe, expect, it } from 'vitest';
import { readSetting } from '../../../shared/config/setting-rows.ts';
import { validateAccountRow } from '../../../shared/config/rows/alerted-account.ts';
import { readAlertedAccount } from '../../../shared/config/rows/alerted-account.ts';

const read = (value: unknown) => readSetting({ name: 'alerts', value }, { local: false });
const problemOf = (result: object): string => ('problem' in result ? String(result.problem) : '');

describe('the setting alerts', () => {
  it('has seven days of its own, and posts nothing without an address', () => {
    expect(read({})).toEqual({ row: { alerts: { planDays: 7, keyDays: 7 } } });
  });

  it.each([
    [{ webhook: 'https://hooks.example.com/relay' }, /^value\.secret: found nothing/],
    [{ webhook: 'http://hooks.example.com', secret: 'ssm:/relay/relay/h' }, /^value\.webhook: found http/],
    [{ webhook: 'https://10.0.0.1/', secret: 'ssm:/relay/relay/h' }, /^value\.webhook: found 10\.0\.0\.1/],
    [{ secret: 'a-canary-secret' }, /^value\.secret: found a value that is not a reference(?!.*canary)/],
    [{ plan_days: 0 }, /^value\.plan_days: found 0/],
    [{ mail: 'me' }, /^value\.mail: found, but not known here/],
  ])('%j is refused', (value, problem) => {
    expect(problemOf(read(value))).toMatch(problem);
  });
});

describe('a row of accounts', () => {
  const row = (more: object) => ({ account: 'acme', ...more });

  it('gives alerts exact amounts and addresses', () => {
    const written = row({
      alert_below: '0.1',
      contact: { email: 'ops@acme.example.com', webhook: 'https://acme.example.com/hook' },
      plan: { level: 2, since: '2026-01-01', until: '2027-01-01' },
    });
    expect(readAlertedAccount(written, { local: false })).toEqual({
      row: {
        account: 'acme',
        alertBelow: 100_000_000n,
        planLevel: 2,
        planUntilMs: Date.UTC(2027, 0, 1),
        email: 'ops@acme.example.com',
        webhook: 'https://acme.example.com/hook',
      },
    });
  });

  it.each([
    [{ alert_below: 0 }, /^alert_below: found 0, wanted yuan.*nobody is reported about the account$/],
    [{ alert_below: '1e3 yuan' }, /^alert_below: /],
    [{ contact: 'me@example.com' }, /^contact: .*a map \{email, webhook\}/],
    [{ contact: { email: 'a@b.example.com\nBcc: c@d.example.com' } }, /^contact\.email: /],
    [{ contact: { email: 'a b@example.com' } }, /^contact\.email: /],
    [{ contact: { email: 'a@example.com,b@example.com' } }, /^contact\.email: /],
    [{ contact: { webhook: 'https://192.168.0.1/' } }, /^contact\.webhook: found 192\.168\.0\.1/],
    [{ contact: { webhook: 'http://127.0.0.1:80' } }, /^contact\.webhook: .*this machine itself/],
    [{ concurrency: 0 }, /^concurrency: found 0.*the account has no plan and no limits$/],
    [{ rpm: 1.5 }, /^rpm: found 1\.5/],
    [{ tpm: -1 }, /^tpm: found -1/],
    [{ enabled: 'maybe' }, /^enabled: found "maybe".*the keys of the account are refused$/],
    [{ enabled: false, note: 4 }, /^note: .*the keys of the account are refused$/],
  ])('%j has a problem that says what follows', (more, problem) => {
    expect(validateAccountRow(row(more)).problem).toMatch(problem);
  });

  it('may name receivers on this machine on the local stack alone', () => {
    const written = row({ contact: { webhook: 'http://127.0.0.1:8080/hook' } });
    expect(validateAccountRow(written, { local: true })).toEqual({});
  });
});
