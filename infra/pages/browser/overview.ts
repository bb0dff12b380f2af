/** Balance, plan, limits, notices, announced prices, and what was refused. */
import type { AccountBody, AccountErrors, AccountPriceChange } from '../../../shared/wire/public-api.ts';
import { byId, codeOf, element, namedParts, type Child, perMillion, timeOf, yuan } from './elements.ts';
import { count } from '../../../shared/relay/page/english.ts';
import { t } from './language.ts';

export function showOverview(body: AccountBody): void {
  const { notices, price_changes: changes, errors, plan_ended_at: ended, days_left: left } = body;
  byId('whose').textContent = body.account;
  byId('hint').textContent = body.key.hint;
  const said = [...lowItems(body), ...notices.map(noticeItem)];
  byId('notices').replaceChildren(...said);
  byId('notices').hidden = said.length === 0;
  byId('figures').replaceChildren(
    figure(t().available, yuan(body.available), isLow(body) ? 'low' : ''),
    ...(left === null
      ? []
      : [figure(t().lasts, t().daysLeft(left), left < lowDays ? 'low' : '', t().atPace)]),
    figure(t().spent, yuan(body.spent)),
    figure(t().reserved, yuan(body.reserved)),
    figure(t().granted, yuan(body.granted)),
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

const figure = (name: string, value: string, className = '', note = ''): HTMLElement =>
  element('div', { className: 'card' }, [
    element('dt', {}, [name]),
    element('dd', { className: `price ${className}` }, [value]),
    ...(note === '' ? [] : [element('dd', { className: 'soft' }, [note])]),
  ]);

const lowDays = 3;
/** An account without any grant pays by a plan, or has not started. */
const isLow = ({ available, alert_below: level, granted, metered }: AccountBody): boolean =>
  metered === undefined && granted !== 0 && (available <= 0 || (level !== null && available < level));

function lowItems(body: AccountBody): HTMLElement[] {
  const { available, alert_below: level } = body;
  if (!isLow(body)) return [];
  const words = available <= 0 ? t().usedUp : t().low(yuan(level ?? 0));
  return [element('li', { className: 'low' }, [words])];
}

function noticeItem({ text, until, models }: AccountBody['notices'][number]): HTMLElement {
  const said = element('bdi', {}, [text]);
  const end = until === null ? [] : [' ', element('small', {}, [t().until(timeOf(until))])];
  const about = models === null ? [] : [element('p', {}, codesOf(models))];
  return element('li', {}, [said, ...end, ...about]);
}

const codesOf = (names: readonly string[]): Child[] => names.flatMap((name) => [codeOf(name), ' ']);

function planParts(plan: AccountBody['plan'], ended: number | null): Child[] {
  if (plan === null) return ended === null ? [] : [element('p', {}, [t().ended(timeOf(ended))])];
  const end = plan.until === null ? '' : t().until(timeOf(plan.until));
  return [
    element('p', {}, [t().level(plan.level, end)]),
    ...plan.items.map(({ name, used, value, resets_at: resets }) => {
      const label = element('bdi', {}, [name]);
      if (value === -1) return element('p', {}, [label, t().usedUnlimited(used)]);
      const said = t().usedOf(used, value, timeOf(resets));
      const meter = element('progress', { max: Math.max(1, value), value: used, ariaLabel: name });
      return element('p', {}, [label, said, meter]);
    }),
  ];
}

function limitParts({ models, limits, expires_at: expires }: AccountBody['key']): Child[] {
  const { budget, max_concurrency: most, rpm } = limits;
  return namedParts([
    [t().modelsOfKey, models === null ? t().allModels : models.join(', ') || t().noModels],
    [t().validUntil, expires === null ? t().furtherNotice : timeOf(expires)],
    [t().atOnce, most === null ? t().noLimit : count(most)],
    [t().aMinute, rpm === null ? t().noLimit : count(rpm)],
    [t().budget, budget && t().budgetOf(yuan(budget.amount), budget.period, timeOf(budget.resets_at))],
  ]);
}

function changeItem(change: AccountPriceChange): HTMLElement {
  const { from, models, type, output, tiers, service_tiers: factors } = change;
  const words = {
    'non-billing': () => t().free,
    'times-billing': () => t().perCall(yuan(output)),
    'token-billing': () =>
      [change, ...tiers]
        .map((rates) => {
          const above = 'above' in rates ? t().above(rates.above) : '';
          const cached = rates.cached_input === null ? undefined : perMillion(rates.cached_input);
          return above + t().rates(perMillion(rates.input), cached, perMillion(rates.output));
        })
        .join('; ')
        .concat(t().perMillion, ...Object.entries(factors ?? {}).map(factorWords)),
  }[type]();
  return element('li', {}, [`${t().fromTime(timeOf(from))}${words} `, ...codesOf(models)]);
}

const factorWords = ([tier, factor]: [string, number]): string => t().factor(tier, factor);

const errorRow = ({ hour, code, count: calls }: AccountErrors): HTMLElement =>
  element('tr', {}, [
    element('td', {}, [timeOf(hour)]),
    element('td', {}, [codeOf(code)]),
    element('td', {}, [count(calls)]),
  ]);
