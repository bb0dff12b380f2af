/** The commands of `channel`: upstreams that the relay calls; and `secret`, whose values never stand on the command line. */
import { describeMark, summarizeAttempts } from '../../../../shared/operate/channels/channel-health.ts';
import { planSwitchChannel } from '../../../../shared/operate/channels/edit-channel.ts';
import {
  viewBalances,
  viewChannels,
  type ChannelWithSums,
} from '../../../../shared/operate/channels/list-channels.ts';
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
  formatBalance,
  isBalanceLow,
  type FoundBalance,
} from '../../../../shared/relay/alerts/upstream-balance.ts';
import {
  carryOutMove,
  carryOutStoreSecret,
  planMoveSecrets,
  planStoreSecret,
} from '../../../../shared/operate/secrets.ts';
import { listFieldsOfType, typeField } from '../../fields/channel-fields.ts';
import type { RowField } from '../../fields/row-field.ts';
import {
  defineChange,
  operators,
  defineRows,
  defineView,
  defineWrite,
  type CommandGroup,
} from '../command.ts';
import { defineSave, waitOption, type WaitOption } from '../config-writing.ts';
import { parseList, parseNumber } from '../option-values.ts';
import type { Column, Terminal } from '../terminal.ts';
import { buildHealthColumns } from './report.ts';
import { formatHelp, defineNew, defineSet, defineShow, type RowGroup } from './rows.ts';

/** Attributes of all types. */
const listChannelFields = ({ target }: Pick<OperatorPorts, 'target'>): RowField[] => [
  typeField,
  ...listFieldsOfType(undefined, {}, target),
];

const channels: RowGroup = {
  table: 'channels',
  noun: 'channel',
  keyOf: (written) => written,
  fields: listChannelFields,
  defaults: { state: true },
  notes: formatHelp(listChannelFields({ target: { stack: '<stack>', local: false } })),
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
  '--secret-env <NAME>': 'read the key from this environment variable instead of the stored secret',
};

const switchCommand = (on: boolean) =>
  defineChange(on ? 'on' : 'off', {
    does: on ? 'enable a channel' : 'disable a channel; lists the models that lose their last channel',
    takes: { '<id>': 'channel id from `channel list`', ...waitOption },
    examples: on ? ['channel on openai'] : ['channel off openai --dry-run'],
    plan: async (run, id: string, options: WaitOption) =>
      defineSave(run, await planSwitchChannel(run.ports, { id, on }), options),
  });

export const channelCommands: CommandGroup = {
  name: 'channel',
  does: 'manage the upstreams that the relay calls',
  notes: `
Channels refer to secrets and never contain them: secret=ssm:/relay/<stack>/channels/<host>/<name> (or just the name),
secret=secretsmanager:<stack>/channels/<host>/<name>, or on a local stack secret=env:NAME, a variable listed in
RELAY_ENV_SECRETS. The relay sends a secret only to its host. Store the secret first:
  printf %s "$OPENAI_API_KEY" | npx --no relay-ops secret new channels/api.openai.com/openai --stack relay`,
  commands: [
    defineNew(channels),
    defineView('list', {
      does: 'list channels in the order the relay tries them',
      lists: true,
      examples: ['channel list', 'channel list --csv'],
      async run({ ports, terminal }) {
        const { channels: listed, knownFrom, problems } = await viewChannels(ports);
        terminal.printList(listed, {
          columns,
          empty: 'No channels. Create one with `npx --no relay-ops channel new`.',
        });
        if (terminal.format !== 'text') return;
        problems.forEach(terminal.remark);
        for (const { id, problem, warning, ...each } of listed) {
          if (each.isFailing)
            terminal.remark(
              `${id} is failing: none of its ${formatCount(each.failing, 'call')} on ${each.lastCall} succeeded. Run \`channel test ${id}\`.`,
            );
          for (const mark of each.marks) terminal.remark(`${id}: ${describeMark(mark)}`);
          if (each.isIdle) terminal.remark(`${id}: no calls since ${knownFrom}`);
          if (problem !== undefined) terminal.remark(`${id} is invalid: ${problem}`);
          if (warning !== undefined) terminal.remark(`${id}: ${warning}`);
        }
      },
    }),
    defineShow(channels),
    defineSet(channels),
    switchCommand(true),
    switchCommand(false),
    defineView('test', {
      does: "send one small chat request with the channel's settings",
      takes: {
        '<id>': 'channel id; a disabled channel works too',
        '--model <name>': "public model name (default: the channel's first)",
        ...asked,
      },
      examples: ['channel test openai --model gpt-4o-mini'],
      policies: operators,
      async run({ ports, terminal }, id: string, options: Omit<TestInput, 'id'>) {
        const plan = await planChannelTest(ports, { ...options, id });
        terminal.warn(plan.warnings);
        plan.effect.forEach(terminal.print);
        const { url, status, elapsedMs, answer, body } = await carryOutChannelTest(ports, plan);
        const { format, print, printJson } = terminal;
        if (format === 'json') printJson({ url, status, elapsed_ms: elapsedMs, answer: answer ?? null });
        if (url !== plan.call.built.request.url)
          print(`The first request was rejected. Retried as POST ${url}`);
        print(`Status ${status} after ${elapsedMs} ms`);
        if (answer === undefined)
          throw new Failure(`the upstream did not return a chat completion: ${body || 'empty body'}`);
        print(`Answer (${answer.model}): ${answer.text || `empty (${answer.ending})`}`);
      },
    }),
    defineView('balance', {
      does: 'show the upstream balance of each secret, if the vendor reports one',
      takes: { '[id]': 'channel id (default: all channels whose upstream reports a balance)' },
      examples: ['channel balance', 'channel balance deepseek --json'],
      policies: operators,
      lists: true,
      async run({ ports, terminal }, id: string | undefined) {
        terminal.printList(await viewBalances(ports, id), {
          columns: balanceColumns,
          empty: 'No channel has a secret for which its upstream reports a balance in a known form.',
        });
      },
    }),
    defineChange('probe', {
      does: 'detect what an upstream supports with up to 12 small calls; saves _can and model_rules',
      takes: {
        '<id>': 'channel id; a disabled channel works too',
        '--model <name>': "public model name to test (default: the channel's first)",
        ...asked,
      },
      examples: ['channel probe openai --model gpt-4o-mini'],
      async plan({ ports }, id: string, options: Omit<TestInput, 'id'>) {
        const plan = await planProbe(ports, { ...options, id });
        return defineWrite({
          plan,
          carryOut: () => carryOutProbe(ports, plan),
          print: printProbe,
          facts: probeFacts,
        });
      },
    }),
    defineChange('sync', {
      does: "sync a channel's models with its provider",
      takes: {
        '<id>': 'channel id',
        '--only <a,b*>': ['add only these models; * matches anything (default: all)', parseList],
        '--keep': 'do not remove models',
        ...asked,
      },
      examples: ["channel sync openai --only 'gpt-5*,o4*' --dry-run"],
      async plan(run, id: string, options: Omit<SyncInput, 'id'>) {
        const plan = await planSync(run.ports, { ...options, id });
        const { added, removed, models } = plan;
        plan.listWarnings.forEach(run.terminal.remark);
        const message = `Saved ${formatCount(models.length, 'model')}; live within 10 s.`;
        return {
          ...defineRows(run, plan, { message, facts: { added, removed, models } }),
          preview: ({ print }) =>
            [...added.map((model) => `+ ${model}`), ...removed.map((model) => `- ${model}`)].forEach(print),
        };
      },
    }),
  ],
};

const health = buildHealthColumns<ChannelWithSums>(({ sum }) => summarizeAttempts(sum));

/** Attempts and times cover today and yesterday (UTC). */
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
  ['last_failure', 'LAST FAILURE', ({ lastFailure }) => lastFailure ?? null],
  ['', 'MODELS', ({ models }) => models],
  ['attempts_14d', '', ({ attempts }) => attempts],
  ['failures_14d', '', ({ failures }) => failures],
  ...health.counts,
  ...health.times,
  // null: unknown.
  ['idle', '', ({ isIdle }) => isIdle ?? null],
  ['failing', '', ({ isFailing }) => isFailing],
  ['marks', '', ({ marks }) => marks.map(describeMark)],
];

const balanceColumns: Column<FoundBalance>[] = [
  ['channel', 'CHANNEL', ({ channel }) => channel],
  ['secret', 'SECRET', ({ secret }) => secret],
  ['amounts', 'BALANCE', ({ amounts }) => amounts ?? null, formatBalance],
  ['balance_below', 'ALERT BELOW', ({ balance_below: below }) => below ?? null],
  ['low', 'LOW', (found) => (found.amounts ? isBalanceLow(found) : null)],
  ['problem', '', ({ problem }) => problem ?? null],
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
  printTable(capabilities.map((name) => [name, describeFound(can[name])]));
  if (unasked.length > 0) print(`Not tested (no calls left): ${unasked.join(', ')}`);
  print(`Sent ${formatCount(sent, 'call')}.`);
  if (Object.keys(rules).length > 0) print(`Saved to params.model_rules: ${JSON.stringify(rules)}`);
  warn(warnings);
  const names = dropped?.map(({ name, calls }) => `${name} (${calls})`) ?? [];
  if (names.length > 0) print(`Fields that customers sent and the upstream did not get: ${names.join(', ')}`);
  print('Saved to _can; live within 10 s.');
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

function describeFound(found: boolean | string[] | undefined): string {
  if (found === undefined) return 'unknown';
  if (typeof found === 'boolean') return found ? 'yes' : 'no';
  return found.join(', ') || 'none';
}

interface StoreOptions {
  secretsmanager?: boolean;
}

const storeCommand = (verb: 'new' | 'set', does: string) =>
  defineChange(verb, {
    does,
    takes: {
      '<name>': 'path in the stack, such as channels/<host>/<name>',
      '--secretsmanager': 'store it in Secrets Manager (default: SSM Parameter Store, which is free)',
    },
    examples: [`printf %s "$OPENAI_API_KEY" | secret ${verb} channels/api.openai.com/openai --stack relay`],
    async plan({ ports, terminal }, name: string, { secretsmanager: managed = false }: StoreOptions) {
      const plan = planStoreSecret(ports, { name, managed, replace: verb === 'set' });
      return defineWrite({
        plan,
        carryOut: async () => carryOutStoreSecret(ports, plan, await terminal.readSecret()),
        print: ({ print }, reference) => print(reference),
        facts: () => ({ reference: plan.reference }),
      });
    },
  });

export const secretCommands: CommandGroup = {
  name: 'secret',
  does: 'store API keys and signing secrets in AWS',
  notes: `
Rows refer to secrets; the values are stored in AWS, and no command shows them. The path names what may read the
secret, and the host it may be sent to:
  channels/<host>/<name>, search/<host>/<name>, payments/<name> (Stripe's key: payments/api.stripe.com/<name>),
  alerts/<name>, console/<name>, canary/<name>
channels/api.openai.com/openai becomes /relay/<stack>/channels/api.openai.com/openai. A local stack has no secret store:
its rows use env:NAME.`,
  commands: [
    storeCommand('new', 'store a secret from standard input and print its reference'),
    storeCommand('set', 'replace a stored secret'),
    defineChange('move', {
      does: 'move secrets to paths that name a purpose: copies them, updates rows, deletes the old ones; safe to repeat',
      takes: {
        '--wait <seconds>': [
          'how long to wait until the rows are live; old secrets are deleted 20 s later (0: at once, for a closed relay)',
          parseNumber,
          60,
        ],
      },
      examples: ['secret move --stack relay --dry-run'],
      async plan({ ports }, { wait }: { wait: number }) {
        const plan = await planMoveSecrets(ports);
        return defineWrite({
          plan,
          carryOut: () => carryOutMove(ports, plan, wait),
          print({ print, remark }, { moved, removed, kept }) {
            print(
              `Updated ${formatCount(moved, 'row')}, deleted ${formatCount(removed.length, 'old secret')}.`,
            );
            for (const reference of kept)
              remark(`Kept ${reference}: another row still uses it. Fix that row, then re-run.`);
          },
          facts: (made) => made ?? {},
        });
      },
    }),
  ],
};
