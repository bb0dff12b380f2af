/** Settings, what is said to customers, and plans: each row of these two tables has a form, and what is empty in it has its default. */
import {
  listRows,
  planRemoveRow,
  planSetRow,
  type ShownRow,
} from '../../../../shared/operate/config/write-rows.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { settingTable } from '../../../../shared/config/setting-rows.ts';
import { isRecord, listIn, parseJson, recordsIn } from '../../../../shared/wire/json.ts';
import { html, shownValue, type Content } from '../../markup.ts';
import { writer, writtenTime } from '../layout/figures.ts';
import {
  choiceField,
  flagField,
  jsonField,
  listFields,
  namesField,
  rowFields,
  seenField,
  third,
  typedList,
  typedNumber,
  typedRow,
  type RowField,
} from '../../fields/row-field.ts';
import { marksElsewhere, withMarks, withoutKeys } from '../layout/form.ts';
import { emptyState, lead, notice, warnings, type Page } from '../layout/frame.ts';
import { actions, badge, column, cut, head, number, table } from '../layout/table.ts';
import { rowProposal } from '../visit/row-proposal.ts';
import { formPage, unlessReading, type Proposal, type Routes, type Visit } from '../visit/visit.ts';

export function settingPages(routes: Routes): void {
  routes.page('/settings', list);
  routes.form('/settings/plans-new', { page: newPlanPage, propose: proposePlan });
  routes.form('/settings/plans/:level', { page: planPage, propose: proposePlan });
  routes.form('/settings/plans/:level/off', { page: planOffPage, propose: proposePlanOff });
  routes.form('/settings/:name', { page: settingPage, propose: proposeSetting });
}

interface SettingForm {
  about: string;
  /** Of the row: its value, or parts of it. */
  fields: (value: unknown) => readonly RowField[];
}

const parts = (about: string, ...fields: RowField[]): SettingForm => ({ about, fields: () => fields });

const flag = (about: string, isDefault: boolean): SettingForm =>
  parts(about, flagField('value', about, `${isDefault ? 'yes' : 'no'}, as it is by default`));

const text = (about: string, more: Partial<RowField> = {}): SettingForm =>
  parts(about, { name: 'value', label: about, help: 'Empty: its default.', ...more });

const names = (about: string, help: string): SettingForm =>
  text(about, {
    ...namesField('value', about, `${help} Apart by commas or lines. Empty: its default.`),
    typed: typedNames,
  });

const typedNames = (typed: string): string[] | undefined => {
  const list = typedList(typed);
  return list.length === 0 ? undefined : list;
};

const switchIn = (value: unknown): boolean =>
  value === true || (isRecord(value) && value['all_keys'] !== false);

const figure = (name: string, label: string, byDefault: string): RowField =>
  third(`value.${name}`, label, `Empty: ${byDefault}.`, { input: 'numeric' });

const secretField = (name: string): RowField => ({
  name,
  label: 'Secret',
  help: 'A reference, never the secret itself: `ssm:/relay/.../name`.',
});

const timeField = (name: string, label: string, none: string): RowField => ({
  name,
  label,
  width: 'third',
  placeholder: 'tomorrow 14:00',
  help: `UTC. Empty: ${none}.`,
});

const noticeFields = (index: number): RowField[] => {
  const at = `value.${index}`;
  return [
    {
      name: `${at}.text`,
      label: `Notice ${index + 1}`,
      kind: 'area',
      help: 'What all customers read, on the pages and in the account. Empty: it is taken back.',
    },
    timeField(`${at}.from`, 'From', 'at once'),
    timeField(`${at}.until`, 'Until', 'until it is taken back'),
    {
      ...namesField(`${at}.models`, 'About the models', 'Empty: about none.'),
      width: 'third',
      typed: typedNames,
    },
  ];
};

/** In the order of the page. A setting without a line has a field for its value as JSON. */
const settingForms: Readonly<Partial<Record<string, SettingForm>>> = {
  notices: { about: 'Notices to customers', fields: (value) => listFields(value, noticeFields) },
  relay_closed: flag('The relay is closed: every call is refused', false),
  'subscription.enabled': flag('Plans cover calls', false),
  unpriced_models: parts(
    'Models without a price',
    choiceField(
      'value',
      'Models without a price',
      { free: 'free: calls cost nothing', refuse: 'refuse: calls are refused' },
      'free, as it is by default',
    ),
  ),
  limits: parts(
    'Limits of calls and of accounts',
    figure('account_concurrency', 'Calls at once, an account', 'no limit'),
    figure('account_rpm', 'Calls a minute, an account', 'no limit'),
    figure('account_tpm', 'Tokens a minute, an account', 'no limit'),
    figure('default_output_tokens', 'Output tokens where a call names none', '16384'),
    figure('request_seconds', 'Seconds of a request', '600'),
    figure('state_days', 'Days that the state of turns is kept', '30'),
    flagField('value.count_free', 'Free calls count', 'yes, as it is by default'),
  ),
  contact: text('What refusals and pages say whom to ask'),
  seller: parts(
    'Who sells, as statements name it',
    { name: 'value.name', label: 'Name' },
    { name: 'value.address', label: 'Address', kind: 'area', help: 'In lines, as on a letter.' },
  ),
  page: flag('The page of models', true),
  account_page: flag('The account page', true),
  time_zone: text('The calendar of budgets', {
    placeholder: 'Asia/Shanghai',
    help: 'A time zone. Empty: UTC.',
  }),
  store: parts(
    'Stored responses',
    {
      ...flagField('value.all_keys', 'Keys that do not say otherwise may store', 'no, as it is by default'),
      // The value may be a switch alone.
      shown: (_, { value }) => (switchIn(value) ? 'yes' : 'no'),
    },
    figure('days', 'Days that they are kept', '30'),
    figure('event_minutes', 'Minutes that the events of a background response are kept', '10'),
  ),
  aliases: parts(
    'Names that stand for models, in the order in which they are tried',
    jsonField('value', 'Aliases', 'A map: `{"smart": ["gpt-4o", "glm-5"]}`.'),
  ),
  alerts: parts(
    'Whom alerts of accounts go to',
    { name: 'value.webhook', label: 'Webhook', help: 'An address that alerts are posted to.' },
    secretField('value.secret'),
    figure('plan_days', 'Days before the end of a plan', '7'),
    figure('key_days', 'Days before the end of a key', '7'),
  ),
  search: parts(
    'Where models named web-... search',
    choiceField('value.type', 'Provider', { searxng: 'searxng', tavily: 'tavily' }, 'none'),
    { name: 'value.endpoint', label: 'Endpoint', help: 'The base address; Tavily has its own.' },
    secretField('value.secret'),
    figure('results', 'Results', '5'),
    { name: 'value.language', label: 'Language', placeholder: 'en', help: 'For SearXNG alone.' },
  ),
  end_users: parts(
    'What upstreams get as end user',
    flagField(
      'value.hash_accounts',
      'A hash of the account where the client names none',
      'yes, as it is by default',
    ),
  ),
  cors_origins: names('Origins whose pages may call the relay', 'Such as https://app.example.com.'),
  content_urls: names('How URLs of images and files may begin', 'Such as https: and data:image/.'),
  top_up_url: text('Where customers top up', { help: '{account} stands for the account. Empty: nowhere.' }),
  model_facts: parts(
    'What the page of a model says beside its prices',
    jsonField(
      'value',
      'Facts',
      'A map by model: `{"gpt-4o": {"context": 128000, "takes": ["text", "image"]}}`.',
    ),
  ),
  payments: parts(
    'Payments by Stripe',
    jsonField('value', 'Payments', 'A map {stripe}: see docs/payments.md. Secrets are references.'),
  ),
};

const formOf = (name: string, value: unknown): readonly RowField[] =>
  settingForms[name]?.fields(value) ?? [
    {
      name: 'value',
      label: 'Value',
      kind: 'area',
      help: 'JSON, or else text. Empty: its default.',
      shown: (each) => (typeof each === 'string' ? each : (JSON.stringify(each) ?? '')),
      typed: (typed) => (typed === '' ? undefined : (parseJson(typed) ?? typed)),
    },
  ];

async function list(visit: Visit): Promise<Page> {
  const { ports, nowMs, options } = visit;
  const [settings, plans] = [await listRows(ports, 'settings'), await listRows(ports, 'plans')];
  const known = new Set([...Object.keys(settingForms), ...Object.keys(settingTable)]);
  const rows = [...known, ...settings.map(({ key }) => String(key)).filter((key) => !known.has(key))].map(
    (name) => ({ name, shown: settings.find(({ key }) => key === name) }),
  );
  const said = [...settings, ...plans].flatMap(({ key, problem, warning }) => {
    const words = problem === undefined ? warning : `is not used: ${problem}`;
    return words === undefined ? [] : [`${key} ${words}`];
  });
  return {
    title: 'Settings',
    actions: unlessReading(
      visit,
      html`<a class="button main" href="settings/notices">Notices</a>
        <a class="button" href="settings/plans-new">New plan</a>`,
    ),
    body: html`${warnings(said)}
      ${table(rows, {
        caption: 'Settings',
        empty: '',
        columns: [
          head('Setting', ({ name }) =>
            options.readOnly ? name : html`<a href="settings/${name}">${name}</a>`,
          ),
          column('Is', ({ name }) => settingForms[name]?.about ?? ''),
          column('Value', ({ shown }) => valueOf(shown)),
          column('Written', ({ shown }) => writtenTime(shown?.at, nowMs), {
            has: ({ shown }) => shown?.at !== undefined,
          }),
          column('By', ({ shown }) => (shown?.by === undefined ? '' : writer(shown.by)), {
            has: ({ shown }) => shown?.by !== undefined,
          }),
        ],
      })}
      <h2>Plans</h2>
      ${table(plans, {
        caption: 'Plans',
        empty: emptyState('No plan', 'Calls are paid from balances.'),
        columns: [
          head('Level', ({ key }) =>
            options.readOnly ? key : html`<a href="settings/plans/${key}">${key}</a>`,
          ),
          number('Price, yuan', ({ row }) => shownValue(row?.['price']) || '–'),
          column('Covers', ({ row, problem }) =>
            problem === undefined ? cut(coverWords(row)) : badge('not used', 'bad'),
          ),
          ...(options.readOnly
            ? []
            : [actions(({ key }: ShownRow) => html`<a href="settings/plans/${key}/off">Delete</a>`)]),
        ],
      })}`,
  };
}

function valueOf(shown: ShownRow | undefined): Content {
  if (shown === undefined) return html`<span class="soft">default</span>`;
  return shown.row === undefined ? badge('not used', 'bad') : cut(shownValue(shown.row['value']));
}

const coverWords = (row: RawRow = {}): string =>
  recordsIn(row['items'])
    .map(
      ({ id, value, models }) =>
        `${shownValue(id)}: ${value === -1 ? 'unlimited' : shownValue(value)} calls a month of ${shownValue(models)}`,
    )
    .join('; ');

/** The row, and what is known against it. Of one with a problem nothing is shown: it may hold a secret in a wrong place. */
async function rowOf({ ports }: Visit, of: 'settings' | 'plans', key: string | number) {
  const found = (await listRows(ports, of)).find((each) => each.key === key);
  const { row = {}, mark, problem, warning } = found ?? {};
  const intro = [
    warnings(marksElsewhere({ warning }, [])),
    problem !== undefined &&
      notice('bad', `${problem}. Its values are not shown: what is written here replaces them.`),
  ];
  return {
    found,
    row,
    intro,
    marks: { problem, warning },
    seen: mark === undefined ? [] : [seenField(mark)],
  };
}

const settingPage = formPage(async (visit, tried) => {
  const name = visit.part('name');
  if (!Object.hasOwn(settingTable, name)) throw usageFailure(`there is no setting ${name}`);
  const { row, intro, marks, seen } = await rowOf(visit, 'settings', name);
  const fields = rowFields(formOf(name, row['value']), row);
  return {
    title: name,
    above: [],
    intro: [lead(settingForms[name]?.about ?? ''), ...intro],
    fields: [...withMarks(fields, marks), ...seen],
    verb: 'Check and go on',
    cancel: 'settings',
    tried: withoutKeys(tried),
  };
});

async function proposeSetting(visit: Visit): Promise<Proposal> {
  const { ports, part, field } = visit;
  const name = part('name');
  const { found, row } = await rowOf(visit, 'settings', name);
  const typedIn = typedRow(formOf(name, row['value']), field, row);
  // What is no longer said is taken back whole, with its times.
  const value =
    name === 'notices'
      ? unlessEmpty(recordsIn(typedIn['value']).filter((each) => each['text'] !== undefined))
      : typedIn['value'];
  const words = { title: `Setting ${name}`, back: 'settings' };
  if (value === undefined) {
    if (!found) throw usageFailure('nothing was typed: it has its default already');
    const plan = await planRemoveRow(ports, { table: 'settings', key: name }, field('seen'));
    return rowProposal(visit, plan, words);
  }
  const seen = found && field('seen');
  const edit = {
    table: 'settings',
    key: name,
    attributes: { value },
    seen,
    isNew: found === undefined,
  } as const;
  return rowProposal(visit, await planSetRow(ports, edit), words);
}

const unlessEmpty = <Item>(items: Item[]): Item[] | undefined => (items.length === 0 ? undefined : items);

const itemFields = (index: number): RowField[] => {
  const at = `items.${index}`;
  return [
    {
      name: `${at}.id`,
      label: `Entry ${index + 1}`,
      width: 'third',
      help: 'Its id, in usage. Empty: no entry.',
    },
    { name: `${at}.name`, label: 'Name', width: 'third', help: 'For customers.' },
    third(`${at}.value`, 'Calls a month', '-1 is unlimited.', { input: 'numeric' }),
    { ...namesField(`${at}.models`, 'Models', 'Apart by commas or lines.'), typed: typedNames },
  ];
};

const planFields = (row: RawRow): RowField[] => [
  { name: 'price', label: 'Price, yuan', input: 'decimal', help: 'Shown to customers.', typed: typedNumber },
  ...listFields(row['items'], itemFields),
];

const newPlanPage = formPage(() => ({
  title: 'New plan',
  above: [],
  intro: lead('It covers calls of the accounts that hold it, while the setting subscription.enabled is on.'),
  fields: [
    { ...choiceField('level', 'Level', { 1: '1', 2: '2', 3: '3' }), help: 'The higher one covers more.' },
    ...rowFields(planFields({}), {}),
  ],
  verb: 'Check and go on',
  cancel: 'settings',
}));

const planPage = formPage(async (visit) => {
  const level = visit.part('level');
  const { found, row, intro, marks, seen } = await rowOf(visit, 'plans', Number(level));
  if (!found) throw usageFailure(`there is no plan ${level}`);
  return {
    title: `Plan ${level}`,
    above: [],
    intro,
    fields: [...withMarks(rowFields(planFields(row), row), marks), ...seen],
    verb: 'Check and go on',
    cancel: 'settings',
  };
});

async function proposePlan(visit: Visit): Promise<Proposal> {
  const { ports, part, field } = visit;
  const level = Number(part('level') || field('level'));
  const { found, row } = await rowOf(visit, 'plans', level);
  const isNew = part('level') === '';
  const { price, items } = typedRow(planFields(isNew ? {} : row), field, isNew ? {} : row);
  const kept = listIn(items).filter((item) =>
    recordsIn([item]).some(({ id, models }) => (id ?? models) !== undefined),
  );
  const attributes = { price, items: unlessEmpty(kept) };
  const seen = found && !isNew ? field('seen') : undefined;
  const plan = await planSetRow(ports, { table: 'plans', key: level, attributes, seen, isNew });
  return rowProposal(visit, plan, { title: `Plan ${level}`, back: 'settings' });
}

const planOffPage = formPage((visit) => ({
  title: `Delete plan ${visit.part('level')}`,
  above: [],
  intro: lead('It covers no calls any more: they are paid from balances. A rollback brings it back.'),
  cancel: 'settings',
}));

async function proposePlanOff(visit: Visit): Promise<Proposal> {
  const level = visit.part('level');
  const plan = await planRemoveRow(visit.ports, { table: 'plans', key: Number(level) });
  return rowProposal(visit, plan, {
    title: `Delete plan ${level}`,
    back: 'settings',
    verb: 'Delete it',
    grave: true,
  });
}
