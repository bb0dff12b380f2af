import { describe, expect, it } from 'vitest';
import { loadDialect } from '../../../shared/upstreams/dialects/dialects.ts';
import { priceFields } from '../../../shared/upstreams/price-fields.ts';
import type { CanonicalCall } from '../../../shared/wire/canonical-call.ts';
import { splitKnown } from '../../../shared/wire/chat-request.ts';
import { settingsWith } from '../../support/dialect-parts.ts';

/** As a client of the dialect's own form sends the field. */
async function sent(name: string, field: string, allow: string[] = []) {
  const request = { model: 'm', messages: [{ role: 'user' as const, content: 'hi' }], [field]: 'flex' };
  const call: CanonicalCall = { form: name, ...splitKnown(request) };
  return (await loadDialect(name)).body(call, settingsWith({ allow }));
}

describe.each(['chat', 'responses', 'messages'])('a field that changes the price, in %s', (name) => {
  it.each(priceFields)('is left out and named: %s', async (field) => {
    const { body, dropped } = await sent(name, field);
    expect(JSON.stringify(body)).not.toContain('flex');
    expect(dropped).toContain(field);
  });
});

it('goes up in chat where the row allows it by name', async () => {
  for (const field of priceFields) {
    const { body, dropped } = await sent('chat', field, [field]);
    expect([body[field], dropped]).toEqual(['flex', []]);
  }
});
