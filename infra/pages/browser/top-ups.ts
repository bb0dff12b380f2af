/** Sells months of plans, and lets customers have their stored card charged when the balance is low. Only Stripe sees card details. */
import type { AutoTopUpBody, TopUpsBody } from '../../../shared/wire/public-api.ts';
import { byId, createButton, findInput, formatYuan, handleSubmit, say } from './elements.ts';
import { t } from './language.ts';
import { describeError, reportProgress, type RelayClient } from './relay-client.ts';

const path = '/v1/account/top-ups';

export class TopUpsSection {
  readonly #client: RelayClient;
  readonly #account: string;

  constructor(client: RelayClient, account: string) {
    this.#client = client;
    this.#account = account;
    const here = { signal: client.ended };
    handleSubmit('auto', () => void this.#start(), here);
    byId('auto-off').addEventListener('click', () => void this.#change({ auto: null }), here);
    client.ended.addEventListener('abort', () => {
      say('auto-state', '');
      byId('buy-plans').replaceChildren();
    });
  }

  async show(): Promise<void> {
    try {
      const { auto, auto_offered: isOffered, plans } = await this.#client.json<TopUpsBody>(path);
      byId('auto').hidden = !isOffered && auto === null;
      showAuto(auto);
      byId('buy-plans').replaceChildren(
        ...plans.map(({ level, price }) => {
          const label = t().buyPlan(level, formatYuan(price));
          const ask = t().buyPlanAsk(label, this.#account);
          return createButton(label, () => confirm(ask) && void this.#change({ plan: level }));
        }),
      );
    } catch (error) {
      say('auto-state', describeError(error), true);
    }
  }

  async #start(): Promise<void> {
    const [below, amount, monthly] = ['below', 'amount', 'monthly'].map(
      (name) => findInput(`auto-${name}`).valueAsNumber,
    );
    if (!confirm(t().topUpAsk(formatYuan(amount ?? 0), this.#account))) return;
    await this.#change({ amount, auto: { below, monthly_limit: monthly } });
  }

  /** Goes to Stripe if a payment or a new card is needed. Other changes apply at once. */
  async #change(body: object): Promise<void> {
    const isDone = await reportProgress('auto-state', async () => {
      const { url } = await this.#client.json<{ url?: string }>(path, { method: 'POST', body });
      if (url !== undefined) location.assign(url);
      return url === undefined ? t().done : t().loading;
    });
    if (isDone && !this.#client.ended.aborted) await this.show();
  }
}

function showAuto(auto: AutoTopUpBody | null): void {
  byId('auto-off').hidden = auto?.on !== true;
  const { below, amount, monthly_limit: monthly } = auto ?? {};
  for (const [name, value] of Object.entries({ below, amount, monthly }))
    if (value) findInput(`auto-${name}`).value = String(value);
  if (auto?.on) say('auto-state', t().autoIsOn(formatYuan(auto.charged.amount), auto.charged.month || '—'));
  else say('auto-state', auto?.off_reason ? t().autoIsOff(auto.off_reason) : '', auto !== null);
}
