/** The account page: takes a key and shows what the key may see. */
import { byId, findInput, formatYuan, handleSubmit, say } from './elements.ts';
import {
  isKey,
  storedKey,
  takeFromAddress,
  CallFailed,
  RelayClient,
  describeError,
  reportProgress,
} from './relay-client.ts';
import { saveLanguage, languageOf, showIn, t, chooseLanguage, type Language } from './language.ts';
import { KeysSection, sayPayment } from './keys.ts';
import { TopUpsSection } from './top-ups.ts';
import { Ledger } from './ledger.ts';
import type { AccountBody, RedeemedCode } from '../../../shared/wire/public-api.ts';
import { showOverview } from './overview.ts';
import { Playground } from './playground.ts';
import { showStatements } from './statement.ts';
import { readDays, UsageChart } from './usage.ts';

/** The key that is open, one at most. */
class Session {
  #visit = new AbortController();

  async open(key: string): Promise<void> {
    this.close();
    const { signal } = (this.#visit = new AbortController());
    const client = new RelayClient(key, signal);
    say('sign-state', t().loading);
    try {
      const body = await client.json<AccountBody>(accountPath());
      if (signal.aborted) return;
      say('sign-state', '');
      // A reload must not silently return to another account.
      if (storedKey.get() !== key) storedKey.set(undefined);
      show(true);
      start(client, body);
    } catch (error) {
      if (signal.aborted) return;
      // Forget a rejected key, or the next visit would be rejected as well.
      if (!(error instanceof CallFailed && error.status === 401)) findInput('key').value = key;
      else if (storedKey.get() === key) storedKey.set(undefined);
      say('sign-state', describeError(error), true);
      show(false);
    }
  }

  close(): void {
    this.#visit.abort();
  }
}

function start(client: RelayClient, body: AccountBody): void {
  let reading = 0;
  const refresh = async (): Promise<void> => {
    const own = (reading += 1);
    try {
      const newer = await client.json<AccountBody>(accountPath());
      // An earlier request may be answered later, for other days.
      if (client.ended.aborted || own !== reading) return;
      showOverview(newer);
      usage.show(newer.days);
      say('open-state', '');
    } catch (error) {
      if (own === reading) say('open-state', describeError(error), true);
    }
  };
  const usage = new UsageChart(client.ended, () => void refresh());
  const ledger = new Ledger(client);
  const refreshAll = (): void => {
    void refresh();
    void ledger.show();
  };
  byId('refresh').addEventListener('click', refreshAll, { signal: client.ended });
  byId('language').addEventListener('click', refreshAll, { signal: client.ended });
  showOverview(body);
  usage.show(body.days);
  void ledger.show();
  const keys = body.key.manage ? new KeysSection(client, body.account) : undefined;
  for (const id of ['keys', 'to-keys']) byId(id).hidden = !keys;
  const topUps = body.key.manage ? new TopUpsSection(client, body.account) : undefined;
  for (const id of ['top-up', 'auto']) byId(id).hidden = true;
  const showManaged = (): void => {
    void keys?.show();
    void topUps?.show();
  };
  showManaged();
  byId('language').addEventListener('click', showManaged, { signal: client.ended });
  showStatements(client);
  say('redeem-state', '');
  handleSubmit('redeem', () => void redeem(client, body.account, refreshAll), { signal: client.ended });
  void new Playground(client, refreshAll).show(body.key.models);
}

/** Asks for confirmation with the account's name: a link with somebody else's key would credit the code to their account. */
async function redeem(client: RelayClient, account: string, refresh: () => void): Promise<void> {
  if (!confirm(t().redeemAsk(account))) return;
  const input = findInput('redeem-code');
  await reportProgress('redeem-state', async () => {
    const call = { method: 'POST', body: { code: input.value } };
    const { amount } = await client.json<RedeemedCode>('/v1/account/codes', call);
    input.value = '';
    // The grant is applied within seconds, so reload the balance then.
    setTimeout(refresh, 3_000);
    return t().redeemed(formatYuan(amount));
  });
}

const accountPath = (): string => `/v1/account?days=${readDays()}`;

function show(isOpen: boolean): void {
  byId('sign').hidden = isOpen;
  byId('open').hidden = !isOpen;
}

function showLanguage(language: Language): void {
  showIn(language);
  const [other, lang] = language === 'en' ? ['中文', 'zh-CN'] : ['English', 'en'];
  sayPayment();
  Object.assign(byId('language'), { textContent: other, lang });
}

const session = new Session();

/** Reloading removes every trace of the account from the page. */
function leave(): void {
  storedKey.set(undefined);
  location.reload();
}

function submitKey(): void {
  const input = findInput('key');
  const key = input.value.trim();
  if (!isKey(key)) {
    say('sign-state', t().noKey, true);
    return;
  }
  input.value = '';
  storedKey.set(findInput('keep').checked ? key : undefined);
  void session.open(key);
}

/** A link with a key, opened in a tab that shows the page already, does not load it again. */
function openFromAddress(): boolean {
  const key = takeFromAddress();
  if (key !== undefined) void session.open(key);
  return key !== undefined;
}

handleSubmit('sign-form', submitKey);
byId('leave').addEventListener('click', leave);
addEventListener('hashchange', openFromAddress);
// Browsers keep a page for their Back button, so the next person would find the account open.
addEventListener('pagehide', () => {
  session.close();
  show(false);
});
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});
byId('language').addEventListener('click', () => {
  const language = languageOf(byId('language').lang);
  saveLanguage(language);
  showLanguage(language);
});
showLanguage(chooseLanguage());
byId('host').textContent = location.host;
byId('sign').hidden = false;
const kept = storedKey.get();
if (!openFromAddress()) {
  if (kept === undefined) byId('key').focus();
  else void session.open(kept);
}
