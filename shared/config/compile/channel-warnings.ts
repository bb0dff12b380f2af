import { dialectOf, quirksOf, upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import { appendsPath } from '../../upstreams/types/channel-attributes.ts';
import { holdsFor } from '../rows/capabilities.ts';
import type { ChannelRow } from '../rows/channel-row.ts';
import { vitalWarnings } from './vital-fields.ts';

/** What is suspicious in a row that is used, each as `attribute: ...`. */
export const channelWarnings = (row: ChannelRow): string[] => [
  ...(row.models.length === 0 ? ['models: empty, so this channel serves nothing'] : []),
  ...(appendsPath(row) && new URL(row.endpoint).pathname === '/'
    ? ['endpoint: has no path; most upstreams want /v1 at the end']
    : []),
  ...Object.keys(row.mapper)
    .filter((name) => !row.models.includes(name))
    .map((name) => `mapper: maps ${name}, which is not in models`),
  ...row.models
    .filter((name) => name.startsWith('web-') || name.endsWith('-official'))
    .map((name) => `models: ${name} is out of reach, since web- and -official are cut from what clients ask`),
  ...strangeCosts(row).map((name) => `cost: has ${name}, which is no model's name at the upstream`),
  ...vitalWarnings(row.params),
  ...conflictsWithProbe(row),
];

function strangeCosts({ cost = {}, mapper, models }: ChannelRow): string[] {
  const known = new Set(['*', ...models.map((model) => upstreamModel({ mapper }, model))]);
  return Object.keys(cost).filter((name) => !known.has(name));
}

/** Where the row asks for what a probe found that the upstream cannot do. */
function conflictsWithProbe(row: ChannelRow): string[] {
  const { can = {}, params } = row;
  const { dialects, efforts } = can;
  const models = row.models.filter((model) => holdsFor(can, model));
  if (models.length === 0) return [];
  const spoken = new Set(models.map((model) => dialectOf(row, model)));
  const unspoken = dialects ? [...spoken].filter((name) => !dialects.includes(name)) : [];
  const unknown =
    efforts && params.efforts ? params.efforts.filter((effort) => !efforts.includes(effort)) : [];
  const everywhere = models.some((model) => quirksOf(row, model).system === 'anywhere');
  return [
    ...unspoken.map((name) => `dialect: is ${name}, but the probe found ${listed(dialects)} alone`),
    ...unknown.map((effort) => `params.efforts: has ${effort}, but the probe found ${listed(efforts)} alone`),
    ...(can.system_anywhere === false && everywhere
      ? ['params.system: is "anywhere", but the probe found that a system message must come first']
      : []),
    ...(can.usage_streaming === false && params.stream && params.include_usage
      ? ['params.include_usage: is true, but the probe found no usage in streams']
      : []),
  ];
}

const listed = (names: readonly string[] = []): string => names.join(', ') || 'none';
