/** Reads metrics from log lines as CloudWatch does, and rejects metrics that CloudWatch would drop silently. */
export interface MetricValue {
  namespace: string;
  name: string;
  unit: string;
  value: number;
  dimensions: Record<string, string>;
  atMs: number;
}

interface Directive {
  Namespace: string;
  Dimensions: string[][];
  Metrics: { Name: string; Unit?: string }[];
}

interface EmbeddedLine {
  [member: string]: unknown;
  _aws?: { Timestamp: number; CloudWatchMetrics: Directive[] };
}

const units = new Set(['Count', 'Milliseconds', 'None']);

/** Returns all metric values of a line; none without `_aws`. */
export function metricsOf(line: string): MetricValue[] {
  const members = JSON.parse(line) as EmbeddedLine;
  if (!members._aws) return [];
  const { Timestamp, CloudWatchMetrics } = members._aws;
  if (!Number.isSafeInteger(Timestamp)) throw new Error(`Timestamp ${Timestamp}`);
  return CloudWatchMetrics.flatMap((directive) =>
    directive.Dimensions.flatMap((names) => {
      const dimensions = Object.fromEntries(names.map((name) => [name, dimensionOf(members, name)]));
      return directive.Metrics.map(({ Name, Unit = 'None' }) => {
        if (!units.has(Unit)) throw new Error(`${Name} has unit ${Unit}`);
        const value = members[Name];
        if (typeof value !== 'number' || !Number.isFinite(value))
          throw new Error(`${Name} is ${String(value)}`);
        return {
          namespace: directive.Namespace,
          name: Name,
          unit: Unit,
          value,
          dimensions,
          atMs: Timestamp,
        };
      });
    }),
  );
}

function dimensionOf(members: EmbeddedLine, name: string): string {
  const value = members[name];
  if (typeof value !== 'string' || value === '' || value.length > 250) throw new Error(`dimension ${name}`);
  return value;
}

/** Captures every line that `work` writes to standard output. */
export async function linesOf(work: () => unknown): Promise<string[]> {
  const write = process.stdout.write.bind(process.stdout);
  const written: string[] = [];
  process.stdout.write = (text: string | Uint8Array) => written.push(String(text)) > 0;
  try {
    await work();
  } finally {
    process.stdout.write = write;
  }
  return written.join('').split('\n').filter(Boolean);
}
