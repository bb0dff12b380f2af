import { readFileSync } from 'node:fs';
import type * as z from 'zod/mini';
import { describe, expect, it } from 'vitest';
import { tableNames } from '../../../shared/tables/table-schemas.ts';
import { AlertedRow } from '../../../shared/config/rows/alerted-account.ts';
import { ChannelRow, readChannel } from '../../../shared/config/rows/channel-row.ts';
import { ChargeRow, readCharge } from '../../../shared/config/rows/charge-row.ts';
import { GrantRow } from '../../../shared/config/rows/grant-row.ts';
import { KeyRow } from '../../../shared/config/rows/key-row.ts';
import { PlanRow, readPlan } from '../../../shared/config/rows/plan-row.ts';
import { readRow } from '../../../shared/config/rows/read-row.ts';
import { readSetting, SettingRow, settingTable } from '../../../shared/config/setting-rows.ts';

const page = readFileSync(new URL('../../../docs/tables.md', import.meta.url), 'utf8');

const readers: Record<string, (raw: unknown) => object> = {
  channels: (raw) => readChannel(raw, { local: false }),
  charges: readCharge,
  plans: readPlan,
  settings: readSetting,
  keys: (raw) => readRow(KeyRow, raw),
  accounts: (raw) => readRow(AlertedRow, raw),
  grants: (raw) => readRow(GrantRow, raw),
};

const schemas = {
  channels: ChannelRow,
  charges: ChargeRow,
  plans: PlanRow,
  settings: SettingRow,
  keys: KeyRow,
  accounts: AlertedRow,
  grants: GrantRow,
};

function sectionOf(table: string): string {
  const start = page.indexOf(`\n## ${table}\n`);
  expect(start, `a section ${table}`).toBeGreaterThan(0);
  return page.slice(start + 1).split('\n## ')[0] ?? '';
}

const examplesOf = (table: string): unknown[] =>
  [...sectionOf(table).matchAll(/```json\n(.*?)```/gs)].map(
    (match) => JSON.parse(String(match[1])) as unknown,
  );

/** The names at the beginning of a section's list items: several may share a description. */
const writtenNames = (table: string): string[] =>
  [...sectionOf(table).matchAll(/^- ((?:`[a-z0-9_.*]+`(?:, )?)+) —/gm)].flatMap(([, names = '']) =>
    Array.from(names.matchAll(/`([^`]+)`/g), ([, name = '']) => name),
  );

const documented = (table: string): string[] => writtenNames(table).flatMap(expandName);

/** `cost.tiers.*` stands for every name that the section `charges` lists below `tiers`. */
function expandName(name: string): string[] {
  const [, parent = '', list] = /^(.*\.)?(\w+)\.\*$/.exec(name) ?? [];
  if (list === undefined) return [name];
  const below = writtenNames('charges').filter((each) => each.startsWith(`${list}.`));
  return below.flatMap(expandName).map((each) => parent + each);
}

/** `plan`, `plan.level`, ...: a map or a list of maps inside a row contributes its own attributes. */
function attributePaths(schema: unknown, prefix = ''): string[] {
  const shape = innerShape(schema);
  return Object.entries(shape).flatMap(([name, inner]) =>
    [prefix + name].concat(attributePaths(inner, `${prefix}${name}.`)),
  );
}

function innerShape(schema: unknown): Record<string, unknown> {
  const { def } = schema as { def: z.core.$ZodTypeDef & Record<string, unknown> };
  if (def.type === 'object') return def['shape'] as Record<string, unknown>;
  const inner = def['innerType'] ?? def['element'] ?? def['valueType'] ?? mapOf(def['out']);
  return inner === undefined ? {} : innerShape(inner);
}

/** The map at the end of an `optionMap` pipe. */
const mapOf = (out: unknown): unknown =>
  (out as { def?: { type?: unknown } } | undefined)?.def?.type === 'object' ? out : undefined;

describe.each(Object.keys(readers))('docs/tables.md, %s', (table) => {
  it('has examples that can be pasted: each is read without a problem or a warning', () => {
    const examples = examplesOf(table);
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples)
      expect(readers[table]?.(example)).toEqual({ row: expect.anything() as unknown });
  });

  it('lists every attribute of a row, and no other', () => {
    const settingNames = table === 'settings' ? Object.keys(settingTable) : [];
    const expected = [...settingNames, ...attributePaths(schemas[table as keyof typeof schemas])];
    expect(new Set(documented(table))).toEqual(new Set(expected));
  });
});

it('names every table of the stack', () => {
  const headings = [...page.matchAll(/^## (.*)$/gm)].flatMap((match) => String(match[1]).split(', '));
  expect(headings).toEqual(expect.arrayContaining([...tableNames]));
});
