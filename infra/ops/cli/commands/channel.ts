/** The commands of `channel`: upstreams that the relay calls; and `secret`, whose values never stand on the command line. */
import { planSwitchChannel } from '../../../../shared/operate/channels/edit-channel.ts';
import { viewChannels, type ChannelWithSums } from '../../../../shared/operate/channels/list-channels.ts';
import {
  carryOutProbe,
  planProbe,
  type ProbeResult,
} from '../../../../shared/operate/channels/probe-channel.ts';
import { planSync, type SyncInput } from '../../../../shared/operate/channels/sync-models.ts';
import {
  carryOutChannelTest,
  planChannelTest,
  type TestInput,
} from '../../../../shared/operate/channels/test-channel.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { formatCount, Failure } from '../../../../shared/operate/plan.ts';
import {
  carryOutMove,
  carryOutStoreSecret,
  planMoveSecrets,
  planStoreSecret,
} from '../../../../shared/operate/secrets.ts';
import { fieldsOfType, typeField } from '../../fields/channel-fields.ts';
import type { RowField } from '../../fields/row-field.ts';
import { changes, operating, rowWrites, shows, writes, type CommandGroup } from '../command.ts';
import { configWriting, waiting, type WaitOption } from '../config-writing.ts';
import { parseList, parseNumber } from '../option-values.ts';
import type { Column, Terminal } from '../terminal.ts';
import { attributesHelp, newCommand, setCommand, showCommand, type RowGroup } from './rows.ts';

/** Of all types. */
const channelFields = ({ target }: Pick<OperatorPorts, 'target'>): RowField[] => [
  typeField,
  ...fieldsOfType(undefined, {}, target),
];

const channels: RowGroup = {
  table: 'channels',
  noun: 'a channel',
  keyOf: (written) => written,
  fields: channelFields,
  begun: { state: true },
  notes: attributesHelp(channelFields({ target: { stack: '<stack>', local: false } })),
  examples: {
    new: [
      'channel new openai endpoint=https://api.openai.com/v1 models=gpt-4o,gpt-4o-mini secret=env:OPENAI_API_KEY',
      'channel new openai endpoint=https://api.openai.com/v1 models=gpt-4o secret=openai --stack relay',
      'channel new ds endpoint=https://api.deepseek.com/v1 models=smart mapper=smart=deepseek-chat priority=10',
      'channel new claude type=anthropic models=claude-sonnet-4-6 secret=ssm:/relay/relay/channels/api.anthropic.com/anthropic --stack relay',
    ],
    show: ['channel show openai'],
    set: ['channel set openai priority=10 weight=2', 'channel set openai models=gpt-4o,gpt-4o-mini'],
  },
};

const asked = {
  '--secret-env <NAME>': 'take the key from this environment variable instead of the reference',
};

const switchCommand = (on: boolean) =>
  changes(on ? 'on' : 'off', {
    does: on ? 'switch a channel on' : 'switch a channel off; says which models nobody else serves',
    takes: { '<id>': 'as `channel list` shows it', ...waiting },
    examples: on ? ['channel on openai'] : ['channel off openai --dry-run'],
    plan: async (run, id: string, options: WaitOption) =>
      configWriting(run, await planSwitchChannel(run.ports, { id, on }), options),
  });

export const channelCommands: CommandGroup = {
  name: 'channel',
  does: 'upstreams that the relay calls',
  notes: `
A secret is given as a reference, never as the value: ssm:/relay/<stack>/channels/<host>/<name>, or the name alone;
secretsmanager:<stack>/channels/<host>/<name>; or, on a local stack only, env:NAME of a variable that
RELAY_ENV_SECRETS lists. It goes to that host alone. Store the value first:
  printf %s "$OPENAI_API_KEY" | npx --no relay-ops secret new channels/api.openai.com/openai --stack relay`,
  commands: [
    newCommand(channels),
    shows('list', {
      does: 'list channels in the order in which they are tried',
      lists: true,
      examples: ['channel list', 'channel list --csv'],
      async run({ ports, terminal }) {
        const { channels: listed, knownFrom, problems } = await viewChannels(ports);
        terminal.printList(listed, {
          columns,
          empty: 'no channels: see `npx --no relay-ops channel new --help`',
        });
        if (terminal.format !== 'text') return;
        problems.forEach(terminal.remark);
        for (const { id, problem, warning, ...each } of listed) {
          if (each.isFailing)
            terminal.remark(
              `${id} fails: all of its ${formatCount(each.failing, 'call')} of ${each.lastCall} did; \`channel test ${id}\` asks it`,
            );
          if (each.isIdle) terminal.remark(`${id}: no call since ${knownFrom}`);
          if (problem !== undefined) terminal.remark(`${id} is not used: ${problem}`);
          if (warning !== undefined) terminal.remark(`${id}: ${warning}`);
        }
      },
    }),
    showCommand(channels),
    setCommand(channels),
    switchCommand(true),
    switchCommand(false),
    shows('test', {
      does: 'send one tiny real chat request, with the settings of the channel',
      takes: {
        '<id>': 'id of the channel; it may be switched off',
        '--model <name>': 'public model name (default: the first of the channel)',
        ...asked,
      },
      examples: ['channel test openai --model gpt-4o-mini'],
      policies: operating,
      async run({ ports, terminal }, id: string, options: Omit<TestInput, 'id'>) {
        const plan = await planChannelTest(ports, { ...options, id });
        terminal.warn(plan.warnings);
        plan.effect.forEach(terminal.print);
        const { url, status, elapsedMs, answer, body } = await carryOutChannelTest(ports, plan);
        const { format, print, printJson } = terminal;
        if (format === 'json') printJson({ url, status, elapsed_ms: elapsedMs, answer: answer ?? null });
        if (url !== plan.call.built.request.url) print(`It was refused; the answer came to POST ${url}`);
        print(`status ${status} after ${elapsedMs} ms`);
        if (answer === undefined)
          throw new Failure(`no chat completion came back: ${body || 'an empty body'}`);
        print(`answer (${answer.model}): ${answer.text || `nothing (${answer.ending})`}`);
      },
    }),
    changes('probe', {
      does: 'ask the upstream what it can, by a dozen small real calls at most; says the cost, asks, writes _can and model_rules',
      takes: {
        '<id>': 'id of the channel; it may be switched off',
        '--model <name>': 'public model name to ask (default: the first of the channel)',
        ...asked,
      },
      examples: ['channel probe openai --model gpt-4o-mini'],
      async plan({ ports }, id: string, options: Omit<TestInput, 'id'>) {
        const plan = await planProbe(ports, { ...options, id });
        return writes({
          plan,
          carryOut: () => carryOutProbe(ports, plan),
          print: printProbe,
          facts: probeFacts,
        });
      },
    }),
    changes('sync', {
      does: 'make the models of a channel those that its upstream lists; shows the difference, asks, writes',
      takes: {
        '<id>': 'id of the channel',
        '--only <a,b*>': ['add only these; * stands for anything (default: all)', parseList],
        '--keep': 'remove none',
        ...asked,
      },
      examples: ["channel sync openai --only 'gpt-5*,o4*' --dry-run"],
      async plan(run, id: string, options: Omit<SyncInput, 'id'>) {
        const plan = await planSync(run.ports, { ...options, id });
        const { added, removed, models } = plan;
        plan.listWarnings.forEach(run.terminal.remark);
        const said = `${formatCount(models.length, 'model is', 'models are')} written; live within 10 seconds.`;
        return {
          ...rowWrites(run, plan, { said, facts: { added, removed, models } }),
          preview: ({ print }) =>
            [...added.map((model) => `+ ${model}`), ...removed.map((model) => `- ${model}`)].forEach(print),
        };
      },
    }),
  ],
};

const columns: Column<ChannelWithSums>[] = [
  ['id', 'ID', ({ id }) => id],
  ['state', 'STATE', ({ state }) => state, ({ state, isFailing }) => (isFailing ? 'failing' : state)],
  ['priority', 'PRIORITY', ({ priority }) => priority],
  ['weight', 'WEIGHT', ({ weight }) => weight],
  ['endpoint', 'ENDPOINT', ({ endpoint }) => endpoint],
  ['secret', 'SECRET', ({ secret }) => secret],
  ['models', '', ({ models }) => models],
  ['problem', '', ({ problem }) => problem],
  ['warning', '', ({ warning }) => warning],
  ['last_call', 'LAST CALL', ({ lastCall }) => lastCall ?? null],
  ['last_failure', 'FAILED', ({ lastFailure }) => lastFailure ?? null],
  ['', 'MODELS', ({ models }) => models],
  ['calls_14d', '', ({ calls }) => calls],
  ['failures_14d', '', ({ failures }) => failures],
  // null: unknown.
  ['idle', '', ({ isIdle }) => isIdle ?? null],
  ['failing', '', ({ isFailing }) => isFailing],
];

/** In the order in which people ask. */
const capabilities = [
  'tools',
  'parallel_tools',
  'json_schema',
  'images',
  'usage_streaming',
  'system_anywhere',
  'efforts',
  'dialects',
] as const;

function printProbe(
  { print, printTable, warn }: Terminal,
  { can, rules, sent, unasked, warnings, dropped }: ProbeResult,
): void {
  printTable(capabilities.map((name) => [name, foundText(can[name])]));
  if (unasked.length > 0) print(`not asked, since no call was left: ${unasked.join(', ')}`);
  print(`${formatCount(sent, 'call was', 'calls were')} sent.`);
  if (Object.keys(rules).length > 0) print(`written to params.model_rules: ${JSON.stringify(rules)}`);
  warn(warnings);
  const names = dropped?.map(({ name, calls }) => `${name} (${calls})`) ?? [];
  if (names.length > 0) print(`fields that customers sent and that did not go up: ${names.join(', ')}`);
  print('written as _can; live within 10 seconds.');
}

const probeFacts = (result: ProbeResult | undefined) =>
  result
    ? {
        can: result.can,
        calls: result.sent,
        unasked: result.unasked,
        row_warnings: result.warnings,
        dropped: result.dropped,
      }
    : {};

function foundText(found: boolean | string[] | undefined): string {
  if (found === undefined) return 'unknown';
  if (typeof found === 'boolean') return found ? 'yes' : 'no';
  return found.join(', ') || 'none';
}

interface StoreOptions {
  secretsmanager?: boolean;
}

const storeCommand = (verb: 'new' | 'set', does: string) =>
  changes(verb, {
    does,
    takes: {
      '<name>': 'path within the stack, which names the purpose: channels/<host>/<name>',
      '--secretsmanager': 'in Secrets Manager (default: SSM Parameter Store, which costs nothing)',
    },
    examples: [`printf %s "$OPENAI_API_KEY" | secret ${verb} channels/api.openai.com/openai --stack relay`],
    async plan({ ports, terminal }, name: string, { secretsmanager: managed = false }: StoreOptions) {
      const plan = planStoreSecret(ports, { name, managed, replace: verb === 'set' });
      return writes({
        plan,
        carryOut: async () => carryOutStoreSecret(ports, plan, await terminal.readSecret()),
        print: ({ print }, reference) => print(reference),
        facts: () => ({ reference: plan.reference }),
      });
    },
  });

export const secretCommands: CommandGroup = {
  name: 'secret',
  does: 'keys and signing secrets, stored in AWS',
  notes: `
Rows name a secret by its reference; the value is stored in AWS, and no command shows it. The path names the purpose, and nothing
else may read the secret. If it is sent to a host, the path names that host too:
  channels/<host>/<name>, search/<host>/<name>, payments/<name> (Stripe's key: payments/api.stripe.com/<name>),
  alerts/<name>, console/<name>, canary/<name>
channels/api.openai.com/openai becomes /relay/<stack>/channels/api.openai.com/openai. On a local stack there is no store: rows
have env:NAME there.`,
  commands: [
    storeCommand('new', 'store a value from standard input, encrypted, and print its reference'),
    storeCommand('set', 'write another value over one that is stored'),
    changes('move', {
      does: 'move secrets whose paths name no purpose: copy them, update the rows, remove the old ones; safe to repeat',
      takes: {
        '--wait <seconds>': [
          'how long to wait until the rows are live; old secrets are removed 20 s later (0: at once, for a closed relay)',
          parseNumber,
          60,
        ],
      },
      examples: ['secret move --stack relay --dry-run'],
      async plan({ ports }, { wait }: { wait: number }) {
        const plan = await planMoveSecrets(ports);
        return writes({
          plan,
          carryOut: () => carryOutMove(ports, plan, wait),
          print({ print, remark }, { moved, removed, kept }) {
            print(
              `Updated ${formatCount(moved, 'row')}, removed ${formatCount(removed.length, 'old secret')}.`,
            );
            for (const reference of kept)
              remark(
                `${reference} is kept because another row names it: fix that row, then repeat the command`,
              );
          },
          facts: (made) => made ?? {},
        });
      },
    }),
  ],
};
