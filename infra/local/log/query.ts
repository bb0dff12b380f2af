/** Queries of CloudWatch Logs Insights as the operators' tool sends them, and no others. */

export interface Query {
  matches(fields: Readonly<Record<string, unknown>>): boolean;
  limit: number;
}

/** Undefined: not a query of the tool. */
export function parseQuery(text: string): Query | undefined {
  const [fields, filter = '', sort, limit = ''] = text.split('\n| ');
  const most = /^limit (\d{1,5})$/.exec(limit)?.[1];
  if (fields !== 'fields @timestamp, @message' || sort !== 'sort @timestamp desc') return undefined;
  if (most === undefined || !filter.startsWith('filter ')) return undefined;
  const conditions = filter
    .slice('filter '.length)
    .split(/ and (?=[\w@.]+ (?:in|like|>) )/)
    .map(parseCondition);
  const all = conditions.filter((condition) => condition !== undefined);
  if (all.length !== conditions.length) return undefined;
  return { matches: (line) => all.every((condition) => condition(line)), limit: Number(most) };
}

type Condition = (line: Readonly<Record<string, unknown>>) => boolean;

function parseCondition(text: string): Condition | undefined {
  const [, listed, values = ''] = /^([\w.]+) in \[(.*)\]$/s.exec(text) ?? [];
  if (listed !== undefined) {
    const accepted = new Set<unknown>([...values.matchAll(/"([^"\\]*)"/g)].map(([, value]) => value));
    return (line) => accepted.has(line[listed]);
  }
  const [, measured, bound] = /^([\w.]+) > (\d+)$/.exec(text) ?? [];
  if (measured !== undefined) return (line) => Number(line[measured]) > Number(bound);
  const [, field, prefix = ''] = /^([\w.]+) like \/\^([0-9a-z]+)\/$/.exec(text) ?? [];
  return field === undefined
    ? undefined
    : (line) => {
        const value = line[field];
        return typeof value === 'string' && value.startsWith(prefix);
      };
}
