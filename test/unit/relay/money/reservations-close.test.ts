import { describe, expect, it } from 'vitest';
import { ReservationsRig } from '../../../support/reservations-rig.ts';

async function reserved(): Promise<{
  rig: ReservationsRig;
  reservation: Awaited<ReturnType<ReservationsRig['reserve']>>;
}> {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', 1000n);
  return { rig, reservation: await rig.reserve() };
}

describe('a close', () => {
  it('charges the full cost above its reservation, even below a zero balance', async () => {
    const { rig, reservation } = await reserved();
    await rig.close(reservation, 1500n);
    expect(rig.item).toMatchObject({ available: -500n, spent: 1500n, granted: 1000n });
  });

  it('after its reservation expired charges the difference once and is logged with its charge', async () => {
    const { rig, reservation } = await reserved();
    const { id, entry, account } = reservation;
    const expiry = { id, kind: 'expired', charge: entry.input, at: 1 } as const;
    await rig.memory.close({ account, id, entry, releaseSlot: false, closeRecord: expiry });
    await rig.close(reservation, 77n);
    expect(rig.item).toMatchObject({ available: 923n, spent: 77n, settled: 2 });
    await rig.close(reservation, 77n);
    expect(rig.item).toMatchObject({ available: 923n, spent: 77n, settled: 2 });
    expect(rig.memory.late.get(`acme late#${id}`)?.row).toMatchObject({
      kind: 'settled',
      charge: 67n,
      reserved: 0n,
    });
    rig.events.pop();
    expect(rig.events).toEqual([
      {
        name: 'settle_late',
        fields: expect.objectContaining({
          request_id: id,
          account: 'acme',
          kind: 'settled',
          charge_nano: '77',
          give_back: false,
          difference_nano: '67',
        }),
      },
    ]);
  });

  it.each([0n, 3n])('after its reservation expired refunds the rest if it costs less: %s', async (charge) => {
    const { rig, reservation } = await reserved();
    const { id, entry, account } = reservation;
    const expiry = { id, kind: 'expired', charge: entry.input, at: 1 } as const;
    await rig.memory.close({ account, id, entry, releaseSlot: false, closeRecord: expiry });
    await rig.close(reservation, charge);
    expect(rig.item).toMatchObject({ available: 1000n - charge, spent: charge });
    expect(rig.imbalance).toBeUndefined();
  });

  it('with a lost reply is recognised by its ledger row, even after another close', async () => {
    const { rig, reservation } = await reserved();
    const other = await rig.reserve();
    rig.store.meets('close', 'lost', { kind: 'taken', afterMs: 100 });
    const closing = rig.close(reservation, 4n);
    const { account, id, entry } = other;
    const closeRecord = { id, kind: 'released', charge: 0n, at: 1 } as const;
    const between = rig.clock
      .sleep(50)
      .then(() => rig.memory.close({ account, id, entry, releaseSlot: true, closeRecord }));
    await rig.clock.run(Promise.all([closing, between]));
    expect(rig.item).toMatchObject({ spent: 4n, settled: 2 });
    expect(rig.events).toEqual([]);
    expect(rig.store.sent).toContain('closedAs');
  });

  it('that cannot be written ends 4 s after its call’s deadline and is logged for the repair', async () => {
    const { rig, reservation } = await reserved();
    rig.store.always('dropped', 'close');
    const startMs = rig.clock.now();
    const closeRecord = {
      id: reservation.id,
      kind: 'settled',
      charge: 77n,
      at: 5,
      endpoint: '/v1/chat/completions',
      prompt_tokens: 7,
      completion_tokens: 2,
      cached_tokens: 3,
      cache_write_tokens: 2,
      cache_write_1h_tokens: 1,
      estimated: true,
      end: 'completed',
      cost: 9n,
      channel: 'openai',
      upstream_model: 'm-2026',
      first_content_ms: 812,
      bought: 5n,
      flag: 'too_low',
      price: '7:free',
    } as const;
    await rig.clock.run(rig.reservations.close(reservation, closeRecord, false));
    const tookMs = rig.clock.now() - startMs;
    expect(tookMs).toBeGreaterThan(600_000);
    expect(tookMs).toBeLessThanOrEqual(604_000);
    expect(rig.events).toEqual([
      {
        name: 'settle_lost',
        fields: {
          request_id: reservation.id,
          account: 'acme',
          give_back: false,
          kind: 'settled',
          charge_nano: '77',
          at: 5,
          endpoint: '/v1/chat/completions',
          prompt_tokens: 7,
          completion_tokens: 2,
          cached_tokens: 3,
          cache_write_tokens: 2,
          cache_write_1h_tokens: 1,
          estimated: true,
          end: 'completed',
          cost_nano: '9',
          channel: 'openai',
          upstream_model: 'm-2026',
          first_content_ms: 812,
          bought_nano: '5',
          flag: 'too_low',
          price: '7:free',
        },
      },
    ]);
    expect(rig.item?.open.has(reservation.id)).toBe(true);
  });
});
