/** Checks the attributes of a channel's row that depend on its type. */
import type { BalanceReport, OwnAttribute, ChannelAttributes } from '../channel-type.ts';
import { dialectPaths } from '../dialects/dialects.ts';
import { findEndpointProblem, type EndpointRules } from '../endpoint-rules.ts';
import { channelSetups, channelTypes, type ChannelTypeName, type OwnAttributeName } from './channel-types.ts';

export const channelTypeNames = Object.keys(channelTypes) as ChannelTypeName[];

type TypedRow = ChannelAttributes<OwnAttributeName> & { type: ChannelTypeName };

/** The attributes that only some types have. Types that share one declare it identically. */
export function listOwnAttributes(): { name: OwnAttributeName; attribute: OwnAttribute }[] {
  const all = Object.values(channelSetups).flatMap(({ attributes }) =>
    Object.entries<OwnAttribute>(attributes),
  );
  return [...new Map<string, OwnAttribute>(all)].map(([name, attribute]) => ({
    name: name as OwnAttributeName,
    attribute,
  }));
}

export const findTypesWith = (name: OwnAttributeName): ChannelTypeName[] =>
  channelTypeNames.filter((type) => Object.hasOwn(channelSetups[type].attributes, name));

/** The row's base address, or its type's. */
export const endpointOf = (row: TypedRow): string | undefined =>
  row.endpoint === '' ? channelSetups[row.type].defaultEndpoint?.(row) : row.endpoint;

export const findBalanceReport = (row: TypedRow): BalanceReport | undefined =>
  channelSetups[row.type].balance?.(row);

export const usesDialectPath = ({ type }: Pick<TypedRow, 'type'>): boolean =>
  !('address' in channelTypes[type]);

/** The problems of a row with its type and its address, each as `attribute: found ..., wanted ...`. */
export function findTypeProblems(row: TypedRow, rules: EndpointRules): string[] {
  const endpoint = endpointOf(row);
  const problems = [...foreignAttributes(row), ...(channelSetups[row.type].problems?.(row, rules) ?? [])];
  if (endpoint === undefined) return problems.length > 0 ? problems : ['endpoint: missing, expected a text'];
  const refused = findEndpointProblem(endpoint, rules, dialectPaths);
  return refused === undefined ? problems : [...problems, `endpoint: ${refused}`];
}

const foreignAttributes = (row: TypedRow): string[] =>
  listOwnAttributes().flatMap(({ name, attribute }) => {
    const types = findTypesWith(name);
    if (row[name] === undefined || types.includes(row.type)) return [];
    const others = types.length === 1 ? `the type ${types.join()} has` : `the types ${types.join(', ')} have`;
    return [`${name}: found one, but only ${others} ${attribute.named}`];
  });
