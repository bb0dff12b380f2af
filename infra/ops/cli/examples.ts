/** Examples of every command, which its help shows. A command that has none fails the test. */
import type { Command } from 'commander';
import { commandName } from './command.ts';

/** In the clone. Elsewhere, after `npm link` there, `relay-ops` alone. */
export const programName = 'npx --no relay-ops';

/** Of the program itself. */
const programExamples = [
  'init --stack relay',
  'key create --account acme',
  'channel list --json',
  'account grant acme 100 --reason "paid by card"',
  'check',
  'audit',
  'key list --stage test --profile prod --region eu-west-1',
];

const ledgerId = '01jd3k5m7n9p1r3t5v7x9z1b3d';

/** By the command's words, without the program's name; what is piped into it comes before. */
const commandExamples: Readonly<Record<string, readonly string[]>> = {
  init: [
    'init --stack relay',
    'init --secret-env OPENAI_API_KEY --models gpt-4o-mini --price gpt-4o-mini=1.08/4.32 --account me --amount 10 --yes',
    'init --stack relay --models gpt-4o-mini --prices prices.json --rate 7.2 --markup 20 --account me',
    'init --endpoint http://127.0.0.1:11434/v1 --no-secret --models llama3 --free llama3 --account me --yes',
  ],
  'customer new': [
    'customer new acme --grant 50 --contact ops@acme.example --link',
    'customer new acme --models gpt-4o,gpt-4o-mini --note "contract 4711" --yes',
  ],
  'customer list': [
    'customer list --sort spent --limit 10',
    'customer list --sort dry',
    'customer list --sort balance --limit 20',
    'customer list --csv',
  ],
  'customer show': ['customer show acme'],
  'customer note': ['customer note acme "pays by invoice"'],
  'customer disable': ['customer disable acme --yes'],
  'customer enable': ['customer enable acme'],
  'customer close': ['customer close acme'],
  'key create': [
    'key create --account acme',
    'key create --account acme --models gpt-4o,gpt-4o-mini --rpm 60 --expires 2027-01-01T00:00:00Z',
  ],
  'key list': ['key list --account acme', 'key list --csv'],
  'key check': ['echo "$KEY" | key check'],
  'key disable': ['key disable 3f9a1c --stack relay --yes'],
  'key enable': ['key enable 3f9a1c'],
  'key rotate': ['key rotate sk-AbCd...wXyZ --grace 7d'],
  'key move': ['key move 3f9a1c other'],
  'key limits': ['key limits 3f9a1c --rpm 60 --concurrency 5', 'key limits 3f9a1c --rpm none'],
  'key budget': ['key budget 3f9a1c 20 --per month', 'key budget 3f9a1c --none'],
  'key models': ['key models 3f9a1c gpt-4o,gpt-4o-mini', 'key models 3f9a1c --all'],
  'key use': ['key use 3f9a1c --since 2026-11-20', 'key use 3f9a1c --csv'],
  'key leaked': ['key leaked 3f9a1c --since 2026-11-20T09:00:00Z'],
  'channel add': [
    'channel add --id openai --endpoint https://api.openai.com/v1 --models gpt-4o,gpt-4o-mini --secret env:OPENAI_API_KEY',
    'channel add --stack relay --id openai --endpoint https://api.openai.com/v1 --models gpt-4o --secret ssm:/relay/relay/openai',
    'channel add --id ds --endpoint https://api.deepseek.com/v1 --models smart --mapper smart=deepseek-chat --priority 10',
    'channel add --stack relay --id claude --type anthropic --models claude-sonnet-4-6 --secret ssm:/relay/relay/anthropic',
  ],
  'channel list': ['channel list', 'channel list --csv'],
  'channel show': ['channel show openai'],
  'channel set': ['channel set openai priority=10 weight=2', 'channel set openai models=gpt-4o,gpt-4o-mini'],
  'channel on': ['channel on openai'],
  'channel off': ['channel off openai --dry-run'],
  'channel test': ['channel test openai --model gpt-4o-mini'],
  'channel probe': ['channel probe openai --model gpt-4o-mini'],
  'channel sync': ["channel sync openai --only 'gpt-5*,o4*' --dry-run"],
  'charge list': ['charge list', 'charge list --csv'],
  'charge explain': ['charge explain gpt-4o --input 1200 --cached 1024 --output 350'],
  'charge import': [
    'charge import prices.json --rate 7.2 --markup 20 --only-served --dry-run',
    'charge import api.json --rate 7.2 --prefix vendor/ --models model-a,model-b',
    'charge import prices.csv --rate 7.2 --yes',
  ],
  'charge show': ['charge show 4'],
  'charge price': [
    'charge price gpt-4o 18/72',
    'charge price gpt-4o 18/72 --cached 1.8 --from 2026-11-30T00:00:00+08:00',
  ],
  'charge set': [
    'charge set 4 input=0.018 output=0.072',
    'charge set 4 --from 2026-11-30T00:00:00+08:00 input=0.02',
    'charge set new type=token-billing models=gpt-4o input=0.018 output=0.072',
  ],
  'charge off': ['charge off 4 --dry-run'],
  'plan list': ['plan list'],
  'plan show': ['plan show 1'],
  'plan set': [
    'plan set 1 price=30',
    `plan set 1 'items=[{"id": "chat", "value": 100, "models": ["gpt-4o"]}]'`,
  ],
  'plan off': ['plan off 1'],
  'grant list': ['grant list --account acme', 'grant list --open', 'grant list --csv'],
  'grant show': ['grant show acme invoice-4711'],
  'account show': ['account show acme'],
  'account responses': ['account responses acme'],
  'account grant': [
    'account grant acme 100 --reason "invoice 4711" --id invoice-4711',
    'account grant acme -2.5 --reason "correction of invoice 4711"',
  ],
  'account refund': [`account refund ${ledgerId} --amount 0.5 --reason "answer was cut"`],
  'account plan': [
    'account plan acme --level 1 --since 2026-11-01 --until 2027-11-01',
    'account plan acme --none',
  ],
  'response show': [
    `response show resp-${ledgerId}`,
    `response show resp-${ledgerId} --content --reason "ticket 4711"`,
  ],
  'response delete': [`response delete resp-${ledgerId} --account acme --yes`],
  'payment link': ['payment link acme --amount 10 --currency usd'],
  'payment list': ['payment list --parked'],
  'payment assign': ['payment assign pi_3Qx acme'],
  'payment reject': ['payment reject pi_3Qx'],
  'ledger list': [
    'ledger list --account acme --limit 20',
    'ledger list --account acme --from 2026-11-01 --to 2026-12-01 --csv > november.csv',
  ],
  'ledger total': [
    'ledger total --by account --from 2026-11-01 --to 2026-12-01',
    'ledger total --account acme --by model,day --csv',
  ],
  request: [`request chatcmpl-${ledgerId}`, 'request 01jd3k5m7n9p'],
  requests: [
    'requests --model gpt-4o --slower-than 5s --since 2h',
    'requests --account acme --since 1h --status failed',
    'requests --channel main --since 2026-11-22T14:00:00Z --until 2026-11-22T14:15:00Z --status slow',
  ],
  statement: [
    'statement acme --month 2026-10 --html acme-2026-10.html',
    'statement acme --month 2026-10 --csv > acme-2026-10.csv',
  ],
  reconcile: [
    'reconcile openai invoice.csv --month 2026-10 --rate 7.2',
    'reconcile openai usage.csv --month 2026-10 --model-column "Line item" --amount-column "Cost (USD)"',
  ],
  audit: ['audit', 'audit --account acme', 'audit --repair lost.log --dry-run'],
  report: [
    'report',
    'report --week 2026-11-18 --html week.html',
    'report --month 2026-11 --html november.html --stack relay',
  ],
  check: ['check', 'check --file rows.json'],
  'what-if': ['what-if rows.json', 'what-if rows.json --prune --json'],
  'setting list': ['setting list'],
  'setting show': ['setting show limits'],
  'setting set': [
    'setting set unpriced_models refuse',
    `setting set limits '{"account_rpm": 600, "account_concurrency": 50}'`,
  ],
  'setting unset': ['setting unset contact'],
  'version list': ['version list', 'version list --limit 100 --csv'],
  'version show': ['version show 11'],
  'version diff': ['version diff 11 12', 'version diff'],
  'version rollback': ['version rollback 11 --dry-run', 'version rollback --to 2026-11-20T14:00'],
  'config show': ['config show', 'config show --version 11'],
  'config diff': ['config diff 11 12'],
  'config export': ['config export rows.json'],
  'config apply': ['config apply rows.json --dry-run'],
  'config rollback': ['config rollback 11'],
  'secret put': [
    'printf %s "$OPENAI_API_KEY" | secret put openai --stack relay',
    'secret put openai --replace --stack relay',
  ],
  console: ['console', 'console --stack relay --read-only'],
  doctor: ['doctor --stack relay', 'doctor --stack relay-test --json'],
  cost: [
    'cost',
    'cost --calls 10000000 --rate 10 --plan pro --memory 128',
    'cost --calls 200000 --seconds 25 --tokens 1500 --request-kilobytes 60 --region eu-central-1 --json',
  ],
};

/** Adds the examples to the help of each command, and of the group it is in. */
export function addExamples(program: Command): void {
  program.addHelpText('after', textOf(programExamples));
  for (const command of program.commands) {
    const leaves = command.commands.length > 0 ? command.commands : [command];
    command.addHelpText('after', textOf(leaves.flatMap((leaf) => examplesOf(leaf).slice(0, 2))));
    if (leaves[0] !== command) for (const leaf of leaves) leaf.addHelpText('after', textOf(examplesOf(leaf)));
  }
}

const examplesOf = (command: Command): readonly string[] => commandExamples[commandName(command)] ?? [];

/** Nothing where there are none: a title without examples would look like a mistake of the reader. */
const textOf = (examples: readonly string[]): string =>
  examples.length === 0 ? '' : `\nExamples:\n${examples.map((example) => `  ${lineOf(example)}`).join('\n')}`;

function lineOf(example: string): string {
  const [command = '', ...before] = example.split(' | ').toReversed();
  return [...before.toReversed(), `${programName} ${command}`].join(' | ');
}
