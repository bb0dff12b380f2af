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
  callIdForms,
  nullContents,
  returnedFields,
  systemPlaces,
  unknownFieldChoices,
} from '../../../shared/upstreams/quirks.ts';
import { makeEntries } from './form-fields.ts';
import { formatLines, parseLines } from './map-lines.ts';
import { makePrice, makePartPrices } from './price-fields.ts';
import {
  makeChoice,
  isReference,
  makeFlag,
  makeJson,
  makeLines,
  makeNames,
  makeCount,
  makeNumber,
  makeShort,
  parseFlag,
  parseNames,
  parseText,
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

const formatted = { format: formatNumber };

/** Lists the attributes of the type, or of all types if none is set, plus others that the row has, so that they can be removed. */
const listTypeFields = (type: string | undefined, row: RawRow): RowField[] =>
  listOwnAttributes()
    .filter(
      ({ name }) => !type || row[name] !== undefined || findTypesWith(name).some((each) => each === type),
    )
    .map(({ name, attribute: { about } }) => ({
      name,
      label: name.replaceAll('_', ' ').replace(/^./, (first) => first.toUpperCase()),
      help: `${about.charAt(0).toUpperCase()}${about.slice(1)} (${findTypesWith(name).join(', ')})`,
    }));

const costFields: readonly RowField[] = [
  {
    name: 'model',
    label: 'Upstream model',
    help: 'The upstream’s name of the model; `*` matches all others.',
  },
  makePrice('input', 'Input cost', 'Per 1M tokens.'),
  makePrice('output', 'Output cost', 'Per 1M tokens.'),
  ...makePartPrices('cost'),
  makeShort('currency', 'Cost currency', 'Leave empty for yuan.', { placeholder: 'USD' }),
  makeNumber('rate', 'Yuan per unit', 'Of the currency.'),
];

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
  makeCount('priority', 'Priority', 'Higher is tried first. Default: 0.', formatted),
  makeNumber('weight', 'Weight', 'Share among channels of the same priority. Default: 1.', formatted),
  {
    ...makeChoice('state', 'State', { on: 'enabled', off: 'disabled' }),
    width: 'third',
    format: (value) => (value === true ? 'on' : 'off'),
    parse: (text) => (text === 'on' || text === 'off' ? text === 'on' : parseFlag(text)),
  },
  makeNumber(
    'balance_below',
    'Alert below',
    'Alerts if the upstream reports less, in the vendor’s unit.',
    formatted,
  ),
  makeNumber('connect_seconds', 'Connect timeout (s)', 'Default: 5.', formatted),
  makeNumber(
    'first_content_seconds',
    'First content timeout (s)',
    'Default: 120, more for long prompts.',
    formatted,
  ),
  makeNumber('total_seconds', 'Total timeout (s)', 'Default: 600.', formatted),
  makeEntries(
    'cost',
    'Costs by upstream model',
    'JSON by upstream model name or `*`, per 1,000 tokens: `{"*": {"input": 0.002, "output": 0.008, "currency": "USD", "rate": 7.2}}`.',
    { key: 'model', noun: 'Cost', isOpen: true, fields: costFields },
  ),
  makeJson(
    'params',
    'Upstream parameters',
    'JSON: `set`, `drop`, `efforts`, `model_rules` and others of docs/tables.md. A probe finds most of them.',
  ),
];

const choices: readonly (readonly [string, string, help: string, string, values: readonly string[]])[] = [
  ['system', 'System texts', 'first: merged into one, at the start.', 'default of the model', systemPlaces],
  [
    'null_content',
    'Empty content',
    'In messages with only tool calls.',
    'default of the model',
    nullContents,
  ],
  ['call_ids', 'Tool call ids', 'The form that the upstream accepts.', 'default of the model', callIdForms],
  [
    'wants_back',
    'Fields to send back',
    'Fields of an answer that later turns must repeat.',
    'default of the model',
    returnedFields,
  ],
  ['unknown_fields', 'Unknown fields', 'pass: they are sent, unless risky.', 'drop', unknownFieldChoices],
];

const flags: readonly (readonly [name: string, label: string, help: string, none: string])[] = [
  ['stream', 'Streams', 'no: the relay never requests a stream.', 'yes'],
  ['include_usage', 'Usage in streams', 'no: `stream_options` is not sent.', 'yes'],
  ['custom_tools', 'Tools with free text', 'no: they are sent as functions.', 'default of the type'],
  ['threads', 'Message threads', 'yes: the upstream stores threads.', 'default of the type'],
  ['think_tags', 'Think tags', 'yes: reasoning arrives in the text.', 'no'],
];

const acceptedGroup: readonly RowField[] = [
  makeCount('params.max_output_tokens', 'Max output tokens', 'Higher limits are lowered to this.', formatted),
  ...flags.map(([name, label, help, none]) =>
    makeFlag(`params.${name}`, label, none, { help, width: 'third' }),
  ),
  ...choices.map(([name, label, help, none, values]) =>
    makeChoice(`params.${name}`, label, Object.fromEntries(values.map((each) => [each, each])), none, {
      help,
      width: 'third',
    }),
  ),
  makeShort('params.efforts', 'Efforts', 'The reasoning efforts that the upstream supports.', {
    placeholder: 'low, high',
    parse: parseNames,
  }),
];

const wordsHelp = 'One per line: `finish eos = stop` or `errors no_quota = account`.';
const dialectHelp = 'One for all models, such as `messages`, or one per line: `smart = messages`.';
const advancedGroup: readonly RowField[] = [
  makeLines('params.set', 'Set fields', 'One per line, in every request: `temperature = 1`.'),
  makeNames('params.drop', 'Drop fields', 'Removed from requests, separated by commas or lines.'),
  makeNames(
    'params.allow',
    'Allow fields',
    'Extra fields that customers may send, separated by commas or lines.',
  ),
  makeLines(
    'params.model_rules',
    'Model rules',
    'One per line: `gpt-5* sampling = none`. A probe detects them.',
    true,
  ),
  makeLines('params.words', 'Finish and error words', wordsHelp, true),
  {
    ...makeLines('dialect', 'Dialect', dialectHelp),
    format: (value) => (typeof value === 'string' ? value : formatLines(value)),
    parse: (text) => (text.includes('=') ? parseLines('dialect', text) : parseText(text)),
  },
  makeNumber('idle_seconds', 'Idle timeout (s)', 'Default: 60.', formatted),
];

/** The form needs no JSON: it has a row for each model's cost, a field for each parameter, and `name = value` lines for each map. */
export const listFormFields = (
  type: string | undefined,
  row: RawRow,
  target: Target,
): readonly RowField[] => [
  ...listFieldsOfType(type, row, target).filter(({ name }) => name !== 'params'),
  ...acceptedGroup.map((field) => Object.assign({}, field, { group: 'What the upstream accepts' })),
  ...advancedGroup.map((field) => Object.assign({}, field, { group: 'Advanced' })),
];

export const typeField: RowField = makeChoice(
  'type',
  'Type',
  Object.fromEntries(channelTypeNames.map((name) => [name, name])),
  `${defaultChannelType} (default)`,
);
