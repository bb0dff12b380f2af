/**
 * Registers a customer with a vendor that asks resellers to name their customers, so that it can restrict this customer and not the
 * whole organisation. Also reads the vendor's open actions. Must not send a customer's name unless the operator gives it.
 */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { CustomerProfile, CustomerProfiles } from '../../upstreams/channel-type.ts';
import { channelSetups } from '../../upstreams/types/channel-types.ts';
import { parseJson, textIn } from '../../wire/json.ts';
import { findChannel, listUsableChannels, readChannelSecret } from '../channels/list-channels.ts';
import { callUpstream, cleanText } from '../channels/test-channel.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { Failure, usageFailure } from '../plan.ts';
import { carryOutWrites, findAccount, updateOf } from '../rows.ts';

interface ProfileInput {
  account: string;
  /** Default: the first enabled channel whose vendor registers customers. */
  channel?: string | undefined;
  /** The company's name, for the vendor. */
  name?: string | undefined;
}

export type ProfilePlan = Awaited<ReturnType<typeof planProfile>>;

const timeoutMs = 20_000;

/** Only looks up a customer that is already registered: then there is nothing to write. */
export async function planProfile(ports: OperatorPorts, { account, channel: id, name }: ProfileInput) {
  const { row } = await findAccount(ports, account);
  const channel = await findProfilesChannel(ports, id);
  const desk = await openDesk(ports, channel);
  const registered = textIn(row[desk.profiles.attribute]);
  const profile = registered === '' ? undefined : await desk.look(registered);
  return {
    changes: profile ? [] : [{ url: desk.profiles.address(channel) }],
    effect: profile
      ? describeProfile(account, profile)
      : [
          `Register ${account} with the provider of channel ${channel.id}${name === undefined ? ', without a name' : ` as ${name}`}`,
        ],
    questions: [],
    profile,
    register: { account, row, desk, name },
  };
}

/** Throws a Failure if the row was changed meanwhile. The message then has the id, which the vendor has created. */
export async function carryOutProfile(
  ports: OperatorPorts,
  { profile, register }: ProfilePlan,
): Promise<CustomerProfile> {
  if (profile) return profile;
  const { account, row, desk, name } = register;
  const made = await desk.register(name);
  const { attribute } = desk.profiles;
  const [update] = updateOf({ table: 'accounts', key: { account }, row }, { [attribute]: made.id });
  const conflict = new Failure(
    `someone else changed ${account} in the meantime: run \`customer set ${account} ${attribute}=${made.id}\``,
  );
  const changes = update ? [{ ...update, conflict }] : [];
  await carryOutWrites(ports, { changes, effect: [], questions: [] });
  return made;
}

/** Describes the profile for the operator, one fact a line. */
export const describeProfile = (
  account: string,
  { id, name, status, actions }: CustomerProfile,
): string[] => [
  `${account} is ${id}${name === undefined ? '' : ` (${name})`} at the provider: ${status}`,
  ...actions.map((action) => `Open action: ${action}`),
];

const profilesOf = ({ type }: Pick<ChannelRow, 'type'>): CustomerProfiles | undefined => {
  const { profiles }: { profiles?: CustomerProfiles } = channelSetups[type];
  return profiles;
};

async function findProfilesChannel(ports: OperatorPorts, id: string | undefined): Promise<ChannelRow> {
  if (id !== undefined) {
    const { channel } = await findChannel(ports, id);
    if (!profilesOf(channel)) throw usageFailure(`the provider of channel ${id} registers no customers`);
    return channel;
  }
  const rows = listUsableChannels(await ports.tables.scan('channels'), ports.target);
  const found = rows.find((channel) => channel.state && profilesOf(channel));
  if (!found) throw new Failure('no enabled channel has a provider that registers customers');
  return found;
}

/** Connects to the profile API of the channel's vendor. */
async function openDesk(ports: OperatorPorts, channel: ChannelRow) {
  const profiles = profilesOf(channel);
  const secret = await readChannelSecret(ports, channel, undefined);
  if (!profiles || secret === undefined) throw new Failure(`channel ${channel.id} has no API key`);
  const send = async (method: 'GET' | 'POST', url: string, body: string): Promise<CustomerProfile> => {
    const headers = { ...profiles.headers(secret), 'content-type': 'application/json' };
    const request = { method, url, headers, body, connectTimeoutMs: timeoutMs };
    const answer = await callUpstream(ports, request, { secret, timeoutMs });
    const profile = answer.ok ? profiles.read(parseJson(answer.body)) : undefined;
    if (profile) return profile;
    throw new Failure(
      `the provider answered ${answer.status}: ${cleanText(answer.body, secret) || 'empty body'}`,
    );
  };
  return {
    profiles,
    look: (id: string) => send('GET', profiles.address(channel, id), ''),
    register: (name: string | undefined) =>
      send('POST', profiles.address(channel), JSON.stringify(profiles.body(name))),
  };
}
