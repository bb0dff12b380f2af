/** Balance, plan, limits, notices, announced prices, and what was refused. */
import { inputParts } from '../../../shared/wire/chat-response.ts';
import type { AccountBody, AccountErrors, AccountRates } from '../../../shared/wire/public-api.ts';
import {
  byId,
  codeOf,
  createNode,
  createDefinitions,
  type Child,
  formatPerMillion,
  formatTime,
  formatYuan,
} from './elements.ts';
import { formatCount } from '../../../shared/relay/page/english.ts';
import { t } from './language.ts';

export function showOverview(body: AccountBody): void {
  const { notices, prices, price_changes: changes, errors, plan_ended_at: ended, days_left: left } = body;
  byId('whose').textContent = body.account;
  byId('hint').textContent = body.key.hint;
  const said = [...createLowWarnings(body), ...notices.map(createNotice)];
  byId('notices').replaceChildren(...said);
  byId('notices').hidden = said.length === 0;
  byId('figures').replaceChildren(
    createFigure(t().available, formatYuan(body.available), isLow(body) ? 'low' : ''),
    ...(left === null
      ? []
      : [createFigure(t().lasts, t().daysLeft(left), left < lowDays ? 'low' : '', t().atPace)]),
    createFigure(t().spent, formatYuan(body.spent)),
    createFigure(t().reserved, formatYuan(body.reserved)),
    createFigure(t().granted, formatYuan(body.granted)),
  );
  showSection('plan', createPlan(body.plan, ended));
  showSection('budgets', body.budgets.map(createBudget));
  showSection('key-limits', createLimits(body.key));
  showSection(
    'prices',
    prices.map((price) => createPrice(price, '', price.until)),
  );
  showSection(
    'changes',
    changes.map((change) => createPrice(change, t().fromTime(formatTime(change.from)))),
  );
  showSection('errors', errors.map(createErrorRow));
}

function showSection(id: string, parts: Child[]): void {
  byId(id).hidden = parts.length === 0;
  byId(`${id}-parts`).replaceChildren(...parts);
}

const createFigure = (name: string, value: string, className = '', note = ''): HTMLElement =>
  createNode('div', { className: 'card' }, [
    createNode('dt', {}, [name]),
    createNode('dd', { className: `price ${className}` }, [value]),
    ...(note === '' ? [] : [createNode('dd', { className: 'soft' }, [note])]),
  ]);

const lowDays = 3;
/** An account without any grant pays by a plan, or has not started. */
const isLow = ({ available, alert_below: level, granted, metered }: AccountBody): boolean =>
  metered === undefined && granted !== 0 && (available <= 0 || (level !== null && available < level));

function createLowWarnings(body: AccountBody): HTMLElement[] {
  const { available, alert_below: level } = body;
  if (!isLow(body)) return [];
  const words = available <= 0 ? t().usedUp : t().low(formatYuan(level ?? 0));
  return [createNode('li', { className: 'low' }, [words])];
}

function createNotice({ text, until, models }: AccountBody['notices'][number]): HTMLElement {
  const said = createNode('bdi', {}, [text]);
  const end = until === null ? [] : [' ', createNode('small', {}, [t().until(formatTime(until))])];
  const about = models === null ? [] : [createNode('p', {}, codesOf(models))];
  return createNode('li', {}, [said, ...end, ...about]);
}

const codesOf = (names: readonly string[]): Child[] => names.flatMap((name) => [codeOf(name), ' ']);

function createPlan(plan: AccountBody['plan'], ended: number | null): Child[] {
  if (plan === null) return ended === null ? [] : [createNode('p', {}, [t().ended(formatTime(ended))])];
  const end = plan.until === null ? '' : t().until(formatTime(plan.until));
  return [
    createNode('p', {}, [t().level(plan.level, end)]),
    ...plan.items.map(({ name, used, value, resets_at: resets }) => {
      const label = createNode('bdi', {}, [name]);
      if (value === -1) return createNode('p', {}, [label, t().usedUnlimited(used)]);
      const said = t().usedOf(used, value, formatTime(resets));
      const meter = createNode('progress', { max: Math.max(1, value), value: used, ariaLabel: name });
      return createNode('p', {}, [label, said, meter]);
    }),
  ];
}

function createBudget({
  by,
  name,
  amount,
  used,
  period,
  resets_at: resetsAt,
}: AccountBody['budgets'][number]): HTMLElement {
  const tag = by.replace(/^tag:/, '');
  const kindLabel = by === tag ? t().endUser : tag;
  const nameLabel = name === '*' ? t().eachOther : name === '' ? t().nameless : name;
  const spent = used === null ? '' : `${formatYuan(used)} / `;
  return createNode('p', {}, [
    createNode('bdi', {}, [`${kindLabel} = ${nameLabel}`]),
    `: ${spent}${t().budgetOf(formatYuan(amount), period, formatTime(resetsAt))}`,
    ...(used === null
      ? []
      : [createNode('progress', { max: amount || 1, value: amount ? used : 1, ariaLabel: nameLabel })]),
  ]);
}

function createLimits({ models, limits, expires_at: expires }: AccountBody['key']): Child[] {
  const { budget, max_concurrency: most, rpm } = limits;
  return createDefinitions([
    [t().modelsOfKey, models === null ? t().allModels : models.join(', ') || t().noModels],
    [t().validUntil, expires === null ? t().furtherNotice : formatTime(expires)],
    [t().atOnce, most === null ? t().noLimit : formatCount(most)],
    [t().aMinute, rpm === null ? t().noLimit : formatCount(rpm)],
    [
      t().budget,
      budget && t().budgetOf(formatYuan(budget.amount), budget.period, formatTime(budget.resets_at)),
    ],
  ]);
}

function createPrice(price: AccountRates, when = '', until: number | null = null): HTMLElement {
  const { models, type, output, tiers, service_tiers: factors } = price;
  const words = {
    'non-billing': () => t().free,
    'times-billing': () => t().perCall(formatYuan(output)),
    'token-billing': () =>
      [price, ...tiers]
        .map((rates) => {
          const above = 'above' in rates ? t().above(rates.above) : '';
          const parts = inputParts.flatMap(({ price: name, label }) => {
            const rate = rates[name];
            return rate === null ? [] : [t().inputPart(label, formatPerMillion(rate))];
          });
          return (
            above + t().rates(formatPerMillion(rates.input), parts.join(''), formatPerMillion(rates.output))
          );
        })
        .join('; ')
        .concat(t().perMillion, ...Object.entries(factors ?? {}).map(formatFactor)),
  }[type]();
  return createNode('li', {}, [
    `${when}${words} `,
    ...codesOf(models),
    until === null ? '' : ` ${t().until(formatTime(until))}`,
  ]);
}

const formatFactor = ([tier, factor]: [string, number]): string => t().factor(tier, factor);

const createErrorRow = ({ hour, code, count: calls }: AccountErrors): HTMLElement =>
  createNode('tr', {}, [
    createNode('td', {}, [formatTime(hour)]),
    createNode('td', {}, [codeOf(code)]),
    createNode('td', {}, [formatCount(calls)]),
  ]);
