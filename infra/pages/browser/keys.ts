/** Customers create and change keys of their account and top up, if their key and the relay allow it. */
import { formatCount } from '../../../shared/relay/page/english.ts';
import type { ManagedKey, ManagedKeyList } from '../../../shared/wire/public-api.ts';
import {
  createButton,
  byId,
  findSelect,
  codeOf,
  createNode,
  findInput,
  handleSubmit,
  say,
  formatTime,
  formatYuan,
} from './elements.ts';
import { t } from './language.ts';
import { reportProgress, describeError, type RelayClient } from './relay-client.ts';

export class KeysSection {
  readonly #client: RelayClient;
  readonly #account: string;
  /** Undefined while the form creates a key. */
  #edited: ManagedKey | undefined;
  #isBusy = false;

  constructor(client: RelayClient, account: string) {
    this.#client = client;
    this.#account = account;
    const here = { signal: client.ended };
    byId('new-key').addEventListener('click', () => this.#open(undefined), here);
    byId('cancel-key').addEventListener('click', closeForm, here);
    byId('hide-made').addEventListener('click', hideMade, here);
    byId('copy-made').addEventListener('click', () => void copyMade(), here);
    handleSubmit('key-form', () => void this.#save(), here);
    handleSubmit('top-up', () => void this.#topUp(), here);
    // Clear everything of this account before the next one.
    client.ended.addEventListener('abort', () => {
      hideMade();
      closeForm();
      byId('key-list').replaceChildren();
      for (const id of ['keys-state', 'top-up-state']) say(id, '');
    });
  }

  async show(): Promise<void> {
    try {
      const list = await this.#client.json<ManagedKeyList>('/v1/account/keys');
      byId('key-list').replaceChildren(...list.data.map((key) => this.#item(key)));
      byId('no-keys').hidden = list.data.some(({ self }) => !self);
      byId('top-up').hidden = list.top_up === null;
      const steps = list.top_up_bonus.map(({ pay, get }) => t().bonusStep(formatYuan(pay), formatYuan(get)));
      byId('top-up-bonus').textContent = steps.join(' · ');
    } catch (error) {
      say('keys-state', describeError(error), true);
    }
  }

  #item(key: ManagedKey): HTMLElement {
    const name = key.name ?? key.hint;
    const buttons = [
      createButton(t().edit, () => this.#open(key)),
      createButton(t().rotate, () => void this.#rotate(key)),
      createButton(
        t().revoke,
        () => confirm(t().revokeAsk(name)) && void this.#write('DELETE', `/${key.id}`),
      ),
    ];
    for (const each of buttons) each.ariaLabel = `${each.textContent} ${name}`;
    return createNode('li', { className: 'card' }, [
      createNode('h3', {}, [
        createNode('bdi', {}, [name]),
        createNode('b', { className: `rest ${key.state}` }, [t().stateOf(key.state)]),
        ...(key.self ? [createNode('small', {}, [t().thisOne])] : []),
      ]),
      createNode('p', { className: 'soft' }, [
        ...(key.name === null ? [] : [codeOf(key.hint), ' ']),
        mayOf(key),
      ]),
      ...(key.made_by === 'customer' ? [createNode('p', { className: 'bar' }, buttons)] : []),
    ]);
  }

  #open(key: ManagedKey | undefined): void {
    this.#edited = key;
    for (const [name, value] of Object.entries(writtenOf(key))) fieldOf(name).value = value;
    byId('key-form').hidden = false;
    findInput('key-name').focus();
  }

  /** Sends only changed fields, so that changes of somebody else stay. */
  async #save(): Promise<void> {
    const before = writtenOf(this.#edited);
    const now = { ...before };
    for (const name of Object.keys(now) as (keyof Written)[]) now[name] = fieldOf(name).value;
    const sentBefore = new Map(Object.entries(sentOf(before)));
    const changed = Object.entries(sentOf(now)).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(sentBefore.get(name)),
    );
    const path = this.#edited === undefined ? '' : `/${this.#edited.id}`;
    if (await this.#write('POST', path, Object.fromEntries(changed))) closeForm();
  }

  async #rotate({ id, name, hint }: ManagedKey): Promise<void> {
    const hours = prompt(t().rotateAsk(name ?? hint), '24');
    // An empty answer must not become 0, which would end the old key at once.
    if (hours !== null)
      await this.#write('POST', `/${id}/rotate`, { grace_hours: Number(hours.trim() || NaN) });
  }

  /** One write at a time, since a second click must not create a second key. Shows a new key once. */
  async #write(method: string, path: string, body?: object): Promise<boolean> {
    if (this.#isBusy) return false;
    this.#isBusy = true;
    const isDone = await reportProgress('keys-state', async () => {
      const call = { method, ...(body && { body }) };
      const { key } = await this.#client.json<{ key?: string }>(`/v1/account/keys${path}`, call);
      if (key !== undefined) showMade(key);
      return t().done;
    });
    this.#isBusy = false;
    // After a failure too: the reply may have been lost, or somebody else changed the key.
    if (!this.#client.ended.aborted) await this.show();
    return isDone;
  }

  /** Asks with the account's name first: the page may have been opened by a link with somebody else's key. */
  async #topUp(): Promise<void> {
    const { valueAsNumber: amount } = findInput('top-up-amount');
    if (!confirm(t().topUpAsk(formatYuan(amount), this.#account))) return;
    await reportProgress('top-up-state', async () => {
      const call = { method: 'POST', body: { amount } };
      const { url } = await this.#client.json<{ url: string }>('/v1/account/top-ups', call);
      location.assign(url);
      return t().loading;
    });
  }
}

function showMade(key: string): void {
  byId('made-key').textContent = key;
  byId('made').hidden = false;
  byId('copy-made').focus();
}

async function copyMade(): Promise<void> {
  await navigator.clipboard.writeText(byId('made-key').textContent);
  say('keys-state', t().copied);
}

function hideMade(): void {
  byId('made').hidden = true;
  byId('made-key').textContent = '';
}

function closeForm(): void {
  byId('key-form').hidden = true;
}

/** A key as the form has it. An empty field means the same as the signed-in key. */
type Written = Record<
  'name' | 'models' | 'amount' | 'period' | 'rpm' | 'max_concurrency' | 'expires' | 'store',
  string
>;

const writtenOf = (key: ManagedKey | undefined): Written => ({
  name: key?.name ?? '',
  models: key?.models?.join(', ') ?? '',
  amount: String(key?.budget?.amount ?? ''),
  period: key?.budget?.period ?? 'month',
  rpm: String(key?.rpm ?? ''),
  max_concurrency: String(key?.max_concurrency ?? ''),
  expires: key?.expires_at ? new Date(key.expires_at * 1000).toISOString().slice(0, 10) : '',
  store: key?.store === undefined || key.store === null ? '' : key.store ? 'yes' : 'no',
});

const fieldOf = (name: string): HTMLInputElement | HTMLSelectElement =>
  name === 'period' || name === 'store' ? findSelect(`key-${name}`) : findInput(`key-${name}`);

function sentOf({ name, models, amount, period, rpm, max_concurrency: most, expires, store }: Written) {
  const names = models.split(/[\s,，]+/).filter(Boolean);
  return {
    name,
    models: names.length === 0 ? null : names,
    budget: amount === '' ? null : { amount: Number(amount), period },
    rpm: rpm === '' ? null : Number(rpm),
    max_concurrency: most === '' ? null : Number(most),
    expires_at: expires === '' ? null : Date.parse(`${expires}T23:59:59Z`) / 1000,
    store: store === '' ? null : store === 'yes',
  };
}

const mayOf = ({ models, budget, rpm, max_concurrency: most, expires_at: expires }: ManagedKey): string =>
  [
    models === null ? t().allModels : models.join(', ') || t().noModels,
    budget && t().budgetOf(formatYuan(budget.amount), budget.period),
    rpm && t().keyRpm(formatCount(rpm)),
    most && t().keyAtOnce(formatCount(most)),
    expires && t().until(formatTime(expires)),
  ]
    .filter(Boolean)
    .join(' · ');

/** Thanks after a payment. The address proves nothing; the balance comes from the relay. */
export function sayPayment(): void {
  const how = new URLSearchParams(location.search).get('top_up');
  const said = how === 'done' ? t().paid : how === 'cancelled' ? t().notPaid : '';
  byId('payment').hidden = said === '';
  byId('payment').textContent = said;
}
