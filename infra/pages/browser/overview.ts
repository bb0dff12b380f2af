/** Balance, plan, limits, notices, announced prices, and what was refused. */
import type { AccountBody, AccountErrors, AccountPriceChange } from '../../../shared/wire/public-api.ts';
import { byId, element, type Child, count, perMillion, plural, timeOf, yuan } from './elements.ts';

export function showOverview(body: AccountBody): void {
  const { notices, price_changes: changes, errors, plan_ended_at: ended } = body;
  byId('hint').textContent = body.key.hint;
  byId('notices').replaceChildren(...notices.map(noticeItem));
  byId('notices').hidden = notices.length === 0;
  byId('figures').replaceChildren(
    figure('Available', yuan(body.available), body.available <= 0 ? 'low' : ''),
    figure('Spent', yuan(body.spent)),
    figure('Reserved for running calls', yuan(body.reserved)),
    figure('Topped up in all', yuan(body.granted)),
  );
  section('plan', planParts(body.plan, ended));
  section('key-limits', limitParts(body.key));
  section('changes', changes.map(changeItem));
  section('errors', errors.map(errorRow));
}

function section(id: string, parts: Child[]): void {
  byId(id).hidden = parts.length === 0;
  byId(`${id}-parts`).replaceChildren(...parts);
}

const figure = (name: string, value: string, className = ''): HTMLElement =>
  element('div', { className: 'card' }, [
    element('dt', {}, [name]),
    element('dd', { className: `price ${className}` }, [value]),
  ]);

function noticeItem({ text, until, models }: AccountBody['notices'][number]): HTMLElement {
  const said = element('bdi', {}, [text]);
  const end = until === null ? [] : [' ', element('small', {}, [`until ${timeOf(until)}`])];
  const about =
    models === null
      ? []
      : [
          element(
            'p',
            {},
            models.flatMap((name) => [codeOf(name), ' ']),
          ),
        ];
  return element('li', {}, [said, ...end, ...about]);
}

const codeOf = (text: string): HTMLElement => element('code', {}, [text]);

function planParts(plan: AccountBody['plan'], ended: number | null): Child[] {
  if (plan === null) return ended === null ? [] : [element('p', {}, [`Ended on ${timeOf(ended)}`])];
  const end = plan.until === null ? '' : `, until ${timeOf(plan.until)}`;
  return [
    element('p', {}, [`Level ${plan.level}${end}`]),
    ...plan.items.map(({ name, used, value, resets_at: resets }) => {
      const label = element('bdi', {}, [name]);
      if (value === -1) return element('p', {}, [label, `: ${plural(used, 'call')} of an unlimited number`]);
      const said = ` ${count(used)} of ${plural(value, 'call')}, anew on ${timeOf(resets)}`;
      const meter = element('progress', { max: Math.max(1, value), value: used, ariaLabel: name });
      return element('p', {}, [label, said, meter]);
    }),
  ];
}

function limitParts({ models, limits, expires_at: expires }: AccountBody['key']): Child[] {
  const { budget, max_concurrency: most, rpm } = limits;
  const lines: [string, string | null][] = [
    ['Models', models === null ? 'all' : models.join(', ') || 'none'],
    ['Valid until', expires === null ? 'further notice' : timeOf(expires)],
    ['Calls at once', most === null ? 'no limit of its own' : count(most)],
    ['Calls a minute', rpm === null ? 'no limit of its own' : count(rpm)],
    ['Budget', budget && `${yuan(budget.amount)} a ${budget.period}, anew on ${timeOf(budget.resets_at)}`],
  ];
  return lines.flatMap(([name, value]) =>
    value === null ? [] : [element('dt', {}, [name]), element('dd', {}, [value])],
  );
}

function changeItem(change: AccountPriceChange): HTMLElement {
  const { from, models, type, output, tiers, service_tiers: factors } = change;
  const words = {
    'non-billing': () => 'free',
    'times-billing': () => `${yuan(output)} per call`,
    'token-billing': () =>
      [change, ...tiers]
        .map((rates) => {
          const above = 'above' in rates ? `above ${count(rates.above)} input tokens ` : '';
          const cached = rates.cached_input === null ? '' : `, ${perMillion(rates.cached_input)} cached`;
          return `${above}${perMillion(rates.input)} in${cached}, ${perMillion(rates.output)} out`;
        })
        .join('; ')
        .concat(' per million tokens', ...Object.entries(factors ?? {}).map(factorWords)),
  }[type]();
  return element('li', {}, [
    `From ${timeOf(from)}: ${words} `,
    ...models.flatMap((name) => [codeOf(name), ' ']),
  ]);
}

const factorWords = ([tier, factor]: [string, number]): string => `; in ${tier} ${factor} times that`;

const errorRow = ({ hour, code, count: calls }: AccountErrors): HTMLElement =>
  element('tr', {}, [
    element('td', {}, [timeOf(hour)]),
    element('td', {}, [codeOf(code)]),
    element('td', {}, [count(calls)]),
  ]);
