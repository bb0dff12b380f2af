/** Everything about people and money as lines of JSON, `{"table", "row"}` each: for the command line and the console's download. */
import { exportPages } from '../../shared/operate/export.ts';
import type { LedgerSelection, OperatorPorts } from '../../shared/operate/operator-ports.ts';
import { maskKeys } from './markup.ts';

export async function* exportLines(
  ports: OperatorPorts,
  selection: Pick<LedgerSelection, 'fromMs' | 'toMs'>,
  onPage: (page: { table: string; count: number; problems: readonly string[] }) => void = () => undefined,
): AsyncGenerator<string> {
  for await (const { table, rows, problems = [] } of exportPages(ports, selection)) {
    onPage({ table, count: rows.length, problems });
    yield rows.map((row) => `${maskKeys(JSON.stringify({ table, row }))}\n`).join('');
  }
}
