import { expect, it } from 'vitest';
import type { CloseRow } from '../../../shared/billing/ledger-row.ts';
import { requestSteps } from '../../../shared/operate/requests/find-request.ts';

const row: CloseRow = {
  account: 'acme',
  id: '01m81b5hbv5v6x8y9z0a1b2c3d',
  at: '2026-11-22T00:00:00Z',
  kind: 'settled',
  model: 'm',
  key: '6f2d3c5e8a1b',
  charge: 23_400_000n,
  reserved: 1_000_000_000n,
  prompt_tokens: 1_200,
  completion_tokens: 350,
  price: '1:tokens:0.018:0.072:x0.5',
  service_tier: 'flex',
};

it('the history of a request names the factor of its sum, and its service tier', () => {
  const steps = new Map(requestSteps(row));
  expect(steps.get('price')).toBe(
    'rule 1: ¥18 per million input tokens, ¥72 per million output tokens, x 0.5',
  );
  expect(steps.get('service tier')).toBe('flex, x 0.5');
  expect(steps.get('charged')).toContain('¥0.0234');
  const unpriced = { ...row, price: '1:tokens:0.018:0.072', service_tier: 'scale', charge: 46_800_000n };
  expect(new Map(requestSteps(unpriced)).get('service tier')).toBe('scale');
  expect(new Map(requestSteps({ ...unpriced, service_tier: undefined })).has('service tier')).toBe(false);
});

it('the history of a request names the agreed price, and why the charge exceeds the reservation', () => {
  const above = { ...row, reserved: 20_000_000n, tariff: '1:tokens:0.018:0.072;flex:x0.5' };
  const steps = new Map(requestSteps(above));
  expect(steps.get('tariff')).toBe('1:tokens:0.018:0.072;flex:x0.5');
  expect(steps.get('excess')).toBe('¥0.0034 more than reserved');
  expect(steps.get('because')).toBe(
    'the upstream reported 350 output tokens, of which the reservation covered 255',
  );
  expect(new Map(requestSteps(row)).has('because')).toBe(false);
});

it('the history of an expired call names its search if the expiry charged it', () => {
  const expired: CloseRow = { ...row, kind: 'expired', price: '1:tokens:0.018:0.072' };
  const ended = (of: CloseRow) => new Map(requestSteps(of, row)).get('ended');
  expect(ended(expired)).toContain('the input charged first');
  expect(ended({ ...expired, search_price: 80_000_000n })).toContain('input and search charged first');
});
