/**
 * Renders a key's budget as the usage limit that Claude Code displays; it warns from 75 %. A budget for a day takes the place of
 * the vendor's five hours, one for a month that of its seven days.
 * Source: code.claude.com, "Claude apps gateway spend limits", November 2026.
 */
import type { BudgetShare } from '../endpoint.ts';

const windows = {
  day: { header: '5h', name: 'five_hour' },
  month: { header: '7d', name: 'seven_day' },
} as const;

/** Highest first. */
const warnings = [0.95, 0.75];

export function renderBudgetHeaders(budget: BudgetShare | undefined): Record<string, string> {
  if (!budget) return {};
  const { header, name } = windows[budget.period];
  const passed = warnings.find((share) => budget.used >= share);
  const status = passed === undefined ? 'allowed' : 'allowed_warning';
  const reset = String(Math.floor(budget.resetsAtMs / 1000));
  const shown = {
    status,
    reset,
    'representative-claim': name,
    [`${header}-status`]: status,
    [`${header}-utilization`]: budget.used.toFixed(4),
    [`${header}-reset`]: reset,
    ...(passed !== undefined && { [`${header}-surpassed-threshold`]: String(passed) }),
  };
  return Object.fromEntries(
    Object.entries(shown).map(([field, value]) => [`anthropic-ratelimit-unified-${field}`, value]),
  );
}

/** The answer of `GET /api/oauth/usage`. */
export function renderBudgetUse(budget: BudgetShare | undefined): object {
  const shown = budget && {
    utilization: Math.round(budget.used * 10_000) / 100,
    resets_at: new Date(budget.resetsAtMs).toISOString(),
  };
  const of = (period: BudgetShare['period']): object | null => (budget?.period === period && shown) || null;
  return { [windows.day.name]: of('day'), [windows.month.name]: of('month') };
}
