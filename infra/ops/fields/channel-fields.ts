/** The fields of a channel: those of all types and those of its own type. */
import { plainValue } from '../../../shared/config/rows/read-row.ts';
import { isOfStack, storedName } from '../../../shared/config/rows/secret-reference.ts';
import type { RawRow, Target } from '../../../shared/operate/operator-ports.ts';
import { usageFailure } from '../../../shared/operate/plan.ts';
import {
  channelTypeNames,
  listOwnAttributes,
  findTypesWith,
} from '../../../shared/upstreams/types/channel-attributes.ts';
import { defaultChannelType } from '../../../shared/upstreams/types/channel-types.ts';
import { asRecord } from '../../../shared/wire/json.ts';
import { formatCell } from '../markup.ts';
import {
  makeChoice,
  isReference,
  makeJson,
  makeNames,
  makeNumber,
  parseFlag,
  parseTypedList,
  type RowField,
} from './row-field.ts';

const parseSecrets =
  ({ stack, local }: Target) =>
  (text: string): string | string[] | undefined => {
    const secrets = parseTypedList(text);
    // `planSetRow` expands a bare name, because it knows the row's host.
    if (secrets.some((each) => !isReference(each) && (local || !storedName.test(each))))
      throw usageFailure(
        'secret: enter a reference, ssm:/relay/<stack>/channels/<host>/<name> or secretsmanager:<stack>/channels/<host>/<name>, and store the key first',
      );
    const foreign = secrets.find((each) => isReference(each) && !isOfStack(each, stack));
    if (foreign !== undefined) throw usageFailure(`secret: stack ${stack} can’t read ${foreign}`);
    return secrets.length > 1 ? secrets : secrets[0];
  };

const formatNumber = (value: unknown): string =>
  typeof value === 'number' || (typeof value === 'string' && /^[\d.+-]{1,20}$/.test(value))
    ? String(value)
    : '';

const isPair = ([name, upstream, ...more]: string[]): boolean =>
  Boolean(name && upstream) && more.length === 0;

/** `smart = deepseek-chat`, one a line. */
const mapperField: RowField = {
  name: 'mapper',
  label: 'Upstream model names',
  kind: 'area',
  placeholder: 'smart = deepseek-chat',
  help: 'Where they differ from the public names, one per line: `smart = deepseek-chat`.',
  format: (value) =>
    Object.entries(asRecord(plainValue(value)))
      .map(([name, upstream]) => `${name} = ${formatCell(upstream)}`)
      .join('\n'),
  parse(text) {
    const lines = text.split(/[\n,]/).filter((line) => line.trim() !== '');
    const pairs = lines.map((line) => line.split('=').map((each) => each.trim()));
    if (!pairs.every(isPair)) throw usageFailure('mapper: write each line as public = upstream');
    return pairs.length === 0 ? undefined : Object.fromEntries(pairs as [string, string][]);
  },
};

const makeSeconds = (name: string, label: string, byDefault: string): RowField =>
  makeNumber(name, label, `Default: ${byDefault}.`, { format: formatNumber });

/** Lists the attributes of the type, or of all types if none is set, plus others that the row has, so that they can be removed. */
const listTypeFields = (type: string | undefined, row: RawRow): RowField[] =>
  listOwnAttributes()
    .filter(
      ({ name }) => !type || row[name] !== undefined || findTypesWith(name).some((each) => each === type),
    )
    .map(({ name, attribute: { about } }) => ({
      name,
      label: name.replaceAll('_', ' ').replace(/^./, (first) => first.toUpperCase()),
      help: `${about} (${findTypesWith(name).join(', ')})`,
    }));

export const listFieldsOfType = (
  type: string | undefined,
  row: RawRow,
  target: Target,
): readonly RowField[] => [
  { name: 'name', label: 'Name', help: 'Shown to operators.' },
  {
    name: 'endpoint',
    label: 'Endpoint',
    help: 'The base URL, usually ending in /v1. Default: the URL of the type, if it has one.',
  },
  ...listTypeFields(type, row),
  {
    name: 'secret',
    label: 'Secret',
    help: 'A reference such as `ssm:/relay/.../channels/<host>/vendor`, or its name alone if it is stored for the endpoint’s host. Never the key itself. Separate several by commas.',
    parse: parseSecrets(target),
  },
  makeNames('models', 'Models', 'Names that clients use, separated by commas or lines.'),
  mapperField,
  makeNumber('priority', 'Priority', 'Higher is tried first. Default: 0.', {
    input: 'numeric',
    format: formatNumber,
  }),
  makeNumber('weight', 'Weight', 'Share among channels of the same priority. Default: 1.', {
    format: formatNumber,
  }),
  {
    ...makeChoice('state', 'State', { on: 'enabled', off: 'disabled' }),
    width: 'third',
    format: (value) => (value === true ? 'on' : 'off'),
    parse: (text) => (text === 'on' || text === 'off' ? text === 'on' : parseFlag(text)),
  },
  makeNumber(
    'balance_below',
    'Alert below',
    'Alerts when the balance that the upstream reports is lower, in the vendor’s unit.',
    {
      format: formatNumber,
    },
  ),
  makeSeconds('connect_seconds', 'Connect timeout (s)', '5'),
  makeSeconds('first_content_seconds', 'First content timeout (s)', '120, more for long prompts'),
  makeSeconds('total_seconds', 'Total timeout (s)', '600'),
  makeJson(
    'cost',
    'Cost',
    'JSON by upstream model name or `*`, per 1,000 tokens: `{"*": {"input": 0.002, "output": 0.008, "currency": "USD", "rate": 7.2}}`.',
  ),
  makeJson(
    'params',
    'Upstream parameters',
    'JSON: `set`, `drop`, `efforts`, `model_rules` and others of docs/tables.md. A probe finds most of them.',
  ),
];

export const typeField: RowField = makeChoice(
  'type',
  'Type',
  Object.fromEntries(channelTypeNames.map((name) => [name, name])),
  `${defaultChannelType} (default)`,
);
