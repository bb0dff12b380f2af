import { describe, expect, it } from 'vitest';
import {
  planAnnouncePrice,
  planNewRule,
  planReprice,
} from '../../../shared/operate/prices/announce-price.ts';
import { planSetRow } from '../../../shared/operate/config/write-rows.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { operatorRig, type RigOptions } from '../../support/operator-rig.ts';

const rule = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 };
const attributes = { type: 'token-billing', models: ['mine'], input: 0.1, output: 0.2 };

/** Somebody else creates rule 2 after the rows were first read. */
function rigWithAnother(options: RigOptions = {}) {
  const rig = operatorRig({ rows: { charges: [rule] }, ...options });
  const { config } = rig.ports;
  let reads = 0;
  const tables: typeof config.tables = async () => {
    const rows = await config.tables();
    const theirs = { ...rule, id: 2, models: ['theirs'] };
    reads += 1;
    return reads === 1 ? rows : { ...rows, charges: [...rows.charges, theirs] };
  };
  return { ...rig, ports: { ...rig.ports, config: { ...config, tables } } };
}

describe('a new rule', () => {
  it('is created or rejected, never written over a rule that somebody else creates meanwhile', async () => {
    const { ports } = rigWithAnother();
    const { plan, id } = await planNewRule(ports, attributes);
    expect(id).toBe(2);
    expect(plan.changes).toMatchObject([{ kind: 'create', row: { id: 2, models: ['mine'] } }]);

    const late = rigWithAnother({ overtaken: ['create charges 2'] });
    const { plan: overtaken } = await planNewRule(late.ports, attributes);
    await expect(carryOutWrites(late.ports, overtaken)).rejects.toThrow(
      'someone else changed charges 2 in the meantime',
    );
  });

  it('with a later start is never written over another rule either', async () => {
    const { ports } = rigWithAnother();
    const announced = { id: 1, from: '2126-01-01', attributes: { input: 3 } };
    const { plan } = await planAnnouncePrice(ports, announced);
    expect(plan.changes).toMatchObject([{ kind: 'create', row: { id: 2, models: ['m'], input: 3 } }]);
  });
});

describe('another price for one model', () => {
  const shared = { ...rule, models: ['m', 'n'], cached_input: 0.1 };
  const attributes = { input: 3, output: 4 };
  const planned = async (charges: object[], more: { from?: string; announced?: string } = {}) => {
    const { ports } = operatorRig({ rows: { charges: charges as Record<string, unknown>[] } });
    return (await planReprice(ports, { model: 'm', attributes, ...more })).changes;
  };

  it('splits a shared rule in one step, the new rule first, so that the model is never free', async () => {
    expect(await planned([shared])).toMatchObject([
      { kind: 'create', row: { id: 2, models: ['m'], input: 3, output: 4, cached_input: 0.1 } },
      { kind: 'update', key: { id: 1 }, attributes: { models: ['n'] } },
    ]);
  });

  it("changes the model's own rule, and a later price gets a new rule", async () => {
    expect(await planned([rule])).toMatchObject([{ kind: 'update', key: { id: 1 }, attributes }]);
    expect(await planned([shared], { from: '2126-01-01' })).toMatchObject([
      { kind: 'create', row: { id: 2, models: ['m'], input: 3, from: '2126-01-01' } },
    ]);
  });

  it('is rejected if another rule would hide it, now or from its start', async () => {
    const hidden = { ...rule, id: 2 };
    await expect(planned([shared, hidden])).rejects.toThrow(
      'rule 2 also prices m and would take precedence: change it with `charge set 2`, or delete it with `charge off 2`',
    );
    const announced = { ...hidden, from: '2126-01-01' };
    await expect(planned([rule, announced], { from: '2126-01-01' })).rejects.toThrow(
      'rule 2 also prices m and would take precedence: change it with `charge set 2`, or delete it with `charge off 2`',
    );
    expect(await planned([rule, announced], { from: '2127-01-01' })).toMatchObject([{ row: { id: 3 } }]);
  });

  describe('that an announced rule would end', () => {
    const announced = { ...rule, id: 2, input: 9, from: '2126-01-01T00:00:00Z' };
    const forBoth = { ...announced, models: ['m', 'n'] };
    type Case = [name: string, choice: string, later: object, changes: object[]];

    it('is rejected, now or with a later start, until somebody decides about that rule', async () => {
      const words =
        /another price of m is announced and would replace this one: rule 2: .*from 2126-01-01T00:00:00Z/;
      await expect(planned([rule, announced])).rejects.toThrow(words);
      await expect(planned([shared, forBoth], { from: '2125-01-01' })).rejects.toThrow(words);
    });

    it.each<Case>([
      ['keeps it', 'keep', announced, []],
      ['deletes it', 'delete', announced, [{ kind: 'remove', key: { id: 2 } }]],
      ['takes the model out of it', 'delete', forBoth, [{ kind: 'update', attributes: { models: ['n'] } }]],
      [
        'moves it',
        '2126-03-01',
        announced,
        [{ kind: 'update', key: { id: 2 }, attributes: { from: '2126-03-01' } }],
      ],
      [
        'moves the model’s part of it',
        '2126-03-01',
        forBoth,
        [
          { kind: 'create', row: { ...announced, id: 3, from: '2126-03-01' } },
          { kind: 'update', key: { id: 2 }, attributes: { models: ['n'] } },
        ],
      ],
    ])('%s', async (_name, choice, later, changes) => {
      const found = await planned([rule, later], { announced: choice });
      expect(found).toHaveLength(changes.length + 1);
      expect(found).toEqual(
        expect.arrayContaining(changes.map((each) => expect.objectContaining(each) as object)),
      );
      expect(found).toContainEqual(expect.objectContaining({ key: { id: 1 }, attributes }));
    });

    it('rejects a move to before the new price, a move of several rules, and invalid choices', async () => {
      const second = { ...announced, id: 3, from: '2127-01-01' };
      for (const choice of ['2020-01-01', 'perhaps'])
        await expect(planned([rule, announced], { announced: choice })).rejects.toThrow(/invalid .*expected/);
      await expect(planned([rule, announced, second], { announced: '2128-01-01' })).rejects.toThrow(
        'only one',
      );
    });

    it("is named by every other edit of a rule's price, but not by edits without a price", async () => {
      const { ports } = operatorRig({ rows: { charges: [rule, forBoth] } });
      const warnings = async (changed: object) =>
        (await planSetRow(ports, { table: 'charges', key: 1, attributes: { ...changed } })).warnings;
      expect(await warnings({ input: 1.1 })).toContainEqual(
        'charges 1: the announced rule 2 will replace the price of m at 2126-01-01T00:00:00Z',
      );
      expect(await warnings({ max_output_tokens: 100 })).toEqual([]);
    });
  });

  it('warns only of its own problems', async () => {
    const served = { id: 'a', endpoint: 'https://a.example/v1', models: ['m', 'n', 'free'], state: true };
    const { ports } = operatorRig({ rows: { charges: [shared], channels: [served] } });
    expect((await planReprice(ports, { model: 'm', attributes })).warnings).toEqual([
      expect.stringMatching(/^charges 2: .* rises by 200 %/),
      'cached_input of rule 1 is unchanged; change it with `charge set 2`',
    ]);
  });

  it('warns of prices that it leaves unchanged: those of long prompts and of the cache', async () => {
    const tiers = [{ above: 200_000, input: 5, output: 6 }];
    const { ports } = operatorRig({ rows: { charges: [{ ...rule, tiers, cached_input: 0.1 }] } });
    const kept = async (more: object) =>
      (await planReprice(ports, { model: 'm', attributes: { ...attributes, ...more } })).warnings.filter(
        (each) => each.includes('unchanged'),
      );
    expect(await kept({})).toEqual([
      'tiers, cached_input of rule 1 are unchanged; change them with `charge set 1`',
    ]);
    expect(await kept({ cached_input: 0.3, tiers: [] })).toEqual([]);
  });

  it('is rejected for a model without a price by tokens', async () => {
    await expect(planned([])).rejects.toThrow(
      'm has no price yet: create a rule with `charge new type=token-billing models=m input=... output=...`',
    );
    await expect(planned([{ ...rule, type: 'non-billing' }])).rejects.toThrow(
      'rule 1 prices m by non-billing: use `charge set`',
    );
  });
});
