/** Prints what a key was used for, by hour and model. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { DailyFigures } from '../../../../shared/billing/daily/daily-figures.ts';
import type { KeyUse } from '../../../../shared/operate/keys/key-use.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const figuresJson = ({ counts, amounts }: DailyFigures) => ({
  calls: counts.calls ?? 0,
  failures: counts.failures ?? 0,
  prompt_tokens: counts.prompt_tokens ?? 0,
  completion_tokens: counts.completion_tokens ?? 0,
  charged: formatYuan(amounts.charged ?? 0n),
});

export const hoursJson = ({ hours }: KeyUse) =>
  hours.map(({ hour, model, figures }) => ({ hour, model, ...figuresJson(figures) }));

const columns = ['hour', 'model', 'calls', 'failures', 'prompt_tokens', 'completion_tokens', 'charged'];

export function printKeyUse(terminal: Terminal, use: KeyUse): void {
  const rows = hoursJson(use);
  terminal.printList({
    columns,
    rows,
    table: () => [
      ['HOUR', 'MODEL', 'CALLS', 'FAILED', 'INPUT', 'OUTPUT', 'CHARGED'],
      ...rows.map((row) => [
        row.hour,
        row.model,
        String(row.calls),
        String(row.failures),
        String(row.prompt_tokens),
        String(row.completion_tokens),
        row.charged,
      ]),
    ],
    empty: `it called nothing since ${isoTime(use.sinceMs)}`,
  });
  use.problems.forEach(terminal.remark);
  const { calls, charged } = figuresJson(use.sum);
  if (terminal.format === 'text' && calls > 0) terminal.print(`${calls} calls, ${charged} yuan in all.`);
}
