/** A write of health as the expressions of one conditional update. */
import type { HealthWrite } from './health-item.ts';
import { cooldownsSize } from './runtime-items.ts';

interface HealthUpdate {
  update: string;
  condition: string;
  names: Record<string, string>;
  values: Record<string, string | number>;
}

export function updateOf(write: HealthWrite): HealthUpdate {
  const entries = entryUpdate(write);
  const size = sizeUpdate(write);
  const clauses = [
    listed('SET', [...entries.sets, ...size.sets]),
    listed('REMOVE', entries.removes),
    listed('ADD', size.adds),
  ];
  return {
    update: clauses.join(' ').trim(),
    condition: [...entries.conditions, ...size.conditions].join(' AND '),
    names: { ...entries.names, ...size.names },
    values: { ...entries.values, ...size.values },
  };
}

const listed = (clause: string, parts: readonly string[]): string =>
  parts.length > 0 ? `${clause} ${parts.join(', ')}` : '';

/** Every entry that is set or removed must be as the image has it. */
function entryUpdate({ entries, expected, removed }: HealthWrite) {
  const old = removed.map((name, i): [string, string] => [`#old${i}`, name]);
  const names: Record<string, string> = Object.fromEntries(old);
  const values: Record<string, string> = {};
  const sets: string[] = [];
  const removes = old.map(([placeholder]) => placeholder);
  const conditions = [...expected].map(([name, was], i) => {
    names[`#e${i}`] = name;
    const text = entries.get(name);
    if (text === undefined) removes.push(`#e${i}`);
    else {
      sets.push(`#e${i} = :e${i}`);
      values[`:e${i}`] = text;
    }
    if (was === undefined) return `attribute_not_exists(#e${i})`;
    values[`:was${i}`] = was;
    return `#e${i} = :was${i}`;
  });
  return { names, values, sets, removes, conditions };
}

/** `bytes` is exact, because every write says what it adds; a write that adds must find room. */
function sizeUpdate({ growth, room, wrongBytes }: HealthWrite): {
  names: Record<string, string>;
  values: Record<string, number>;
  sets: string[];
  adds: string[];
  conditions: string[];
} {
  const names = { '#bytes': cooldownsSize };
  if (wrongBytes) {
    const { was, bytes } = wrongBytes;
    return {
      names,
      values: { ':bytes': bytes, ...(was !== undefined && { ':wasBytes': was }) },
      sets: ['#bytes = :bytes'],
      adds: [],
      conditions: [was === undefined ? 'attribute_not_exists(#bytes)' : '#bytes = :wasBytes'],
    };
  }
  if (growth === 0) return { names: {}, values: {}, sets: [], adds: [], conditions: [] };
  return {
    names,
    values: { ':growth': growth, ...(growth > 0 && { ':room': room }) },
    sets: [],
    adds: ['#bytes :growth'],
    conditions: growth > 0 ? ['(attribute_not_exists(#bytes) OR #bytes <= :room)'] : [],
  };
}
