/** Plans the setting that refuses calls of models without a price. One that is there stays as it is. */
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RowWrite } from '../row-tables.ts';
import { serviceGaps } from './price-gaps.ts';

const name = 'unpriced_models';
const namesMax = 5;

/** @param known models that are looked at elsewhere: they get a price, or are warned of */
export async function planRefuseUnpriced(
  ports: Pick<OperatorPorts, 'clock' | 'tables' | 'target'>,
  known: readonly string[],
): Promise<Plan<RowWrite>> {
  const there = await ports.tables.get('settings', name);
  if (there === undefined) {
    const lost = (await serviceGaps(ports)).free.filter((model) => !known.includes(model));
    return {
      changes: [{ kind: 'create', table: 'settings', row: { name, value: 'refuse' } }],
      effect: ['calls of models without a price are refused (setting unpriced_models)'],
      questions: [],
      ...(lost.length > 0 && {
        warnings: [
          `served and free until now, refused from then on (${lost.length}): ${lost.slice(0, namesMax).join(', ')}`,
        ],
      }),
    };
  }
  const isRefusing = there['value'] === 'refuse';
  const warning = `the setting ${name} is not "refuse": models without a price are free`;
  return { changes: [], effect: [], questions: [], warnings: isRefusing ? [] : [warning] };
}
