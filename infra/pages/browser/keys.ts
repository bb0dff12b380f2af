/** Keys that customers make of their own account, and top-ups: for a key that may, and as much as the relay lets it. */
import { count } from '../../../shared/relay/page/english.ts';
import type { ManagedKey, ManagedKeyList } from '../../../shared/wire/public-api.ts';
import { button, byId, choiceById, element, inputById, say, timeOf, yuan, type Child } from './elements.ts';
import { t } from './language.ts';
import { wordsOf, type RelayClient } from './relay-client.ts';

const fields = ['name', 'models', 'amount', 'rpm', 'max_concurrency', 'expires'] as const;
type Field = (typeof fields)[number] | 'period' | 'store';

export class KeysSection {
  readonly #client: RelayClient;
  /** The key that the form is about; undefined: a new one. */
  #edited: ManagedKey | undefined;
  #isBusy = false;

  constructor(client: RelayClient) {
    this.#client = client;
    const here = { signal: client.ended };
    byId('new-key').addEventListener('click', () => this.#open(undefined), here);
    byId('cancel-key').addEventListener('click', () => (byId('key-form').hidden = true), here);
    byId('hide-made').addEventListener('click', hideMade, here);
    byId('copy-made').addEventListener(
      'click',
      () =>
        void navigator.clipboard
          .writeText(byId('made-key').textContent)
          .then(() => say('keys-state', t().copied)),
      here,
    );
    onSubmit('key-form', here, () => void this.#save());
    onSubmit('top-up', here, () => void this.#topUp());
    client.ended.addEventListener('abort', hideMade);
  }

  async show(): Promise<void> {
    try {
      const list = await this.#client.get<ManagedKeyList>('/v1/account/keys');
      for (const id of ['keys', 'to-keys']) byId(id).hidden = false;
      byId('key-list').replaceChildren(...list.data.map((key) => this.#item(key)));
      byId('no-keys').hidden = list.data.some(({ self }) => !self);
      byId('top-up').hidden = list.top_up === null;
    } catch (error) {
      say('keys-state', wordsOf(error), true);
    }
  }

  #item(key: ManagedKey): HTMLElement {
    const name = key.name ?? key.hint;
    const buttons = [
      button(t().edit, () => this.#open(key)),
      button(t().rotate, () => void this.#rotate(key)),
      button(t().revoke, () => confirm(t().revokeAsk(name)) && void this.#write('DELETE', `/${key.id}`)),
    ];
    for (const each of buttons) each.ariaLabel = `${each.textContent} ${name}`;
    return element('li', { className: 'card' }, [
      element('h3', {}, [
        element('bdi', {}, [name]),
        element('b', { className: `rest ${key.state}` }, [t().stateOf(key.state)]),
        ...(key.self ? [element('small', {}, [t().thisOne])] : []),
      ]),
      element('p', { className: 'soft' }, [
        ...(key.name === null ? [] : [element('code', {}, [key.hint]), ' ']),
        mayOf(key),
      ]),
      ...(key.made_by === 'customer' ? [element('p', { className: 'bar' }, buttons)] : []),
    ]);
  }

  #open(key: ManagedKey | undefined): void {
    this.#edited = key;
    for (const [name, value] of Object.entries(writtenOf(key))) fieldOf(name as Field).value = value;
    byId('key-form').hidden = false;
    inputById('key-name').focus();
  }

  /** Sends what was changed, and no more: what somebody else changed meanwhile stays. */
  async #save(): Promise<void> {
    const before = writtenOf(this.#edited);
    const changed = (...names: Field[]): boolean =>
      names.some((name) => fieldOf(name).value !== before[name]);
    const { value: store } = fieldOf('store');
    const [models, amount, expires] = (['models', 'amount', 'expires'] as const).map(
      (name) => fieldOf(name).value,
    );
    const names = (models ?? '').split(/[\s,，]+/).filter(Boolean);
    const body = {
      ...(changed('name') && { name: fieldOf('name').value }),
      ...(changed('models') && { models: names.length === 0 ? null : names }),
      ...(changed('amount', 'period') && {
        budget: amount === '' ? null : { amount: Number(amount), period: fieldOf('period').value },
      }),
      ...(changed('rpm') && { rpm: numberOf(fieldOf('rpm').value) }),
      ...(changed('max_concurrency') && { max_concurrency: numberOf(fieldOf('max_concurrency').value) }),
      ...(changed('expires') && {
        expires_at: expires === '' ? null : Date.parse(`${expires}T23:59:59Z`) / 1000,
      }),
      ...(changed('store') && { store: store === '' ? null : store === 'yes' }),
    };
    const isSaved = await this.#write('POST', this.#edited === undefined ? '' : `/${this.#edited.id}`, body);
    if (isSaved) byId('key-form').hidden = true;
  }

  async #rotate({ id, name, hint }: ManagedKey): Promise<void> {
    const hours = prompt(t().rotateAsk(name ?? hint), '24');
    if (hours !== null) await this.#write('POST', `/${id}/rotate`, { grace_hours: Number(hours) });
  }

  /** One at a time: a second click must not make a second key. Shows a key that was made, this once. */
  async #write(method: string, path: string, body?: object): Promise<boolean> {
    if (this.#isBusy) return false;
    this.#isBusy = true;
    say('keys-state', t().loading);
    try {
      const { key } = await this.#client.send<{ key?: string }>(method, `/v1/account/keys${path}`, body);
      if (key !== undefined) showMade(key);
      say('keys-state', t().done);
      return true;
    } catch (error) {
      say('keys-state', wordsOf(error), true);
      return false;
    } finally {
      this.#isBusy = false;
      // Also after a failure: a reply may have been lost, or the key was changed meanwhile.
      if (!this.#client.ended.aborted) await this.show();
    }
  }

  async #topUp(): Promise<void> {
    say('top-up-state', t().loading);
    try {
      const { valueAsNumber: amount } = inputById('top-up-amount');
      const { url } = await this.#client.send<{ url: string }>('POST', '/v1/account/top-ups', { amount });
      if (!url.startsWith('https:')) throw new Error(url);
      location.assign(url);
    } catch (error) {
      say('top-up-state', wordsOf(error), true);
    }
  }
}

function onSubmit(id: string, options: AddEventListenerOptions, act: () => void): void {
  const submitted = (event: Event): void => {
    event.preventDefault();
    act();
  };
  byId(id).addEventListener('submit', submitted, options);
}

function showMade(key: string): void {
  byId('made-key').textContent = key;
  byId('made').hidden = false;
  byId('copy-made').focus();
}

function hideMade(): void {
  byId('made').hidden = true;
  byId('made-key').textContent = '';
}

const fieldOf = (name: Field): HTMLInputElement | HTMLSelectElement =>
  name === 'period' || name === 'store' ? choiceById(`key-${name}`) : inputById(`key-${name}`);

const numberOf = (written: string): number | null => (written === '' ? null : Number(written));

/** A key as the form has it. */
const writtenOf = (key: ManagedKey | undefined): Record<Field, string> => ({
  name: key?.name ?? '',
  models: key?.models?.join(', ') ?? '',
  amount: String(key?.budget?.amount ?? ''),
  period: key?.budget?.period ?? 'month',
  rpm: String(key?.rpm ?? ''),
  max_concurrency: String(key?.max_concurrency ?? ''),
  expires: key?.expires_at ? new Date(key.expires_at * 1000).toISOString().slice(0, 10) : '',
  store: key?.store === undefined || key.store === null ? '' : key.store ? 'yes' : 'no',
});

const mayOf = ({ models, budget, rpm, max_concurrency: most, expires_at: expires }: ManagedKey): string =>
  [
    models === null ? t().mayAll : models.join(', ') || t().noModels,
    budget && t().keyBudget(yuan(budget.amount), budget.period),
    rpm && t().keyRpm(count(rpm)),
    most && t().keyAtOnce(count(most)),
    expires && t().until(timeOf(expires)),
  ]
    .filter(Boolean)
    .join(' · ');

/** Back from a payment. The balance is what the relay was told of, not what the address says. */
export function sayPayment(): void {
  const how = new URLSearchParams(location.search).get('top_up');
  const words: Record<string, string> = { done: t().paid, cancelled: t().notPaid };
  const said: Child = words[how ?? ''] ?? '';
  byId('payment').hidden = said === '';
  byId('payment').replaceChildren(said);
}
