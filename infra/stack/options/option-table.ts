/**
 * Every option of a deployment, one entry each: its value, its default, what it does. The reader of `relay.<stage>.json`,
 * the schema beside it, the published options and docs/options.md follow from this table.
 */
import * as z from 'zod/mini';
import { BedrockModels } from './bedrock-models.ts';
import { arn, count, email, flag, secretNumbers, text } from './option-kinds.ts';
import { regionProblem } from './streaming-regions.ts';

interface Option<Schema extends z.ZodMiniType = z.ZodMiniType> {
  schema: Schema;
  what: string;
  /** Absent: without the option there is nothing of it. */
  default?: z.infer<Schema>;
}

const option = <Schema extends z.ZodMiniType>(
  schema: Schema,
  what: string,
  standard?: z.infer<Schema>,
): Option<Schema> => ({ schema, what, ...(standard !== undefined && { default: standard }) });

const regionName = text(/^[a-z]{2,4}(-[a-z]+)+-\d{1,2}$/, 'a region, such as eu-central-1').check(
  z.refine((region: string) => regionProblem(region) === undefined, {
    error: ({ input }) => `another region: ${regionProblem(String(input))}`,
  }),
);
const hostName = text(
  /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  'a lower-case host name',
);

/** Narrower than an address may be, because it becomes part of a permission. */
const sender = text(
  /^[A-Za-z0-9._+-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  'an e-mail address that SES has verified, its domain in lower case',
);

const ascending = (numbers: readonly number[]): boolean =>
  numbers.every((number, index) => number > (numbers[index - 1] ?? 0));

export const optionTable = {
  region: option(regionName, 'the region of the stage; others are then refused'),
  disposable: option(flag, 'for trials: tables are not protected and are deleted with the stack', false),
  domain: option(hostName, 'your host name; needs certificateArn'),
  certificateArn: option(
    arn(
      'acm',
      'certificate/[0-9a-f-]+',
      'the ARN of an ACM certificate in us-east-1, the one region CloudFront reads certificates from',
      'us-east-1',
    ),
    'the certificate of the domain, in us-east-1 whatever the region of the stack',
  ),
  alarmEmail: option(email, 'receives alarms and alerts through a topic of the stack'),
  alertSender: option(sender, 'mails the contacts of accounts from this address, which SES has verified'),
  originSecrets: option(secretNumbers(3), 'numbers of the secrets between CloudFront and functions', [1]),
  sealKeys: option(
    secretNumbers(10).check(z.refine(ascending, 'ascending numbers, such as [1,2]')),
    'numbers of the keys that seal the state of turns',
    [1],
  ),
  bedrockModels: option(BedrockModels, 'Bedrock models that the relay may call with its own role', []),
  reservedConcurrency: option(
    count(1, 100_000),
    'calls at once that AWS reserves for each of chat and responses, and their bound',
  ),
} satisfies Record<string, Option>;

export type OptionName = keyof typeof optionTable;

/** The options of a file: as given, nothing filled in. */
export type StageOptions = { [Name in OptionName]?: z.infer<(typeof optionTable)[Name]['schema']> };

export const optionNames = Object.keys(optionTable) as OptionName[];

export const options: Readonly<Record<string, Option>> = optionTable;

/** Fields that a reader of other stacks may look for, and why there is none. */
export const refusedFields: ReadonlyMap<string, string> = new Map([
  [
    'vpc',
    'Function URLs do not stream from functions in a VPC, so the relay has none; upstreams inside one are reached through a public name',
  ],
  ['stage', "the file's name says it: relay.<stage>.json, deployed with npm run deploy -- --stage <stage>"],
]);
