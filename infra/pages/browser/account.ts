/** The account page: takes a key and shows what the key may see. */
import { byId, inputById, onSubmit, say } from './elements.ts';
import { isKey, keptKey, takeFromAddress, CallFailed, RelayClient, wordsOf } from './relay-client.ts';
import { keepLanguage, languageOf, showIn, t, wantedLanguage, type Language } from './language.ts';
import { KeysSection, sayPayment } from './keys.ts';
import { Ledger } from './ledger.ts';
import type { AccountBody } from '../../../shared/wire/public-api.ts';
import { showOverview } from './overview.ts';
import { Playground } from './playground.ts';
import { statementSection } from './statement.ts';
import { daysChosen, UsageChart } from './usage.ts';

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
      if (keptKey.get() !== key) keptKey.set(undefined);
      show(true);
      start(client, body);
    } catch (error) {
      if (signal.aborted) return;
      // Forget a rejected key, or the next visit would be rejected as well.
      if (!(error instanceof CallFailed && error.status === 401)) inputById('key').value = key;
      else if (keptKey.get() === key) keptKey.set(undefined);
      say('sign-state', wordsOf(error), true);
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
      if (own === reading) say('open-state', wordsOf(error), true);
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
  byId('top-up').hidden = true;
  void keys?.show();
  byId('language').addEventListener('click', () => void keys?.show(), { signal: client.ended });
  statementSection(client);
  void new Playground(client, refreshAll).show(body.key.models);
}

const accountPath = (): string => `/v1/account?days=${daysChosen()}`;

function show(isOpen: boolean): void {
  byId('sign').hidden = isOpen;
  byId('open').hidden = !isOpen;
}

function speak(language: Language): void {
  showIn(language);
  const [other, lang] = language === 'en' ? ['中文', 'zh-CN'] : ['English', 'en'];
  sayPayment();
  Object.assign(byId('language'), { textContent: other, lang });
}

const session = new Session();

/** Reloading removes every trace of the account from the page. */
function leave(): void {
  keptKey.set(undefined);
  location.reload();
}

function submitted(): void {
  const input = inputById('key');
  const key = input.value.trim();
  if (!isKey(key)) {
    say('sign-state', t().noKey, true);
    return;
  }
  input.value = '';
  keptKey.set(inputById('keep').checked ? key : undefined);
  void session.open(key);
}

/** A link with a key, opened in a tab that shows the page already, does not load it again. */
function fromAddress(): boolean {
  const key = takeFromAddress();
  if (key !== undefined) void session.open(key);
  return key !== undefined;
}

onSubmit('sign-form', submitted);
byId('leave').addEventListener('click', leave);
addEventListener('hashchange', fromAddress);
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
  keepLanguage(language);
  speak(language);
});
speak(wantedLanguage());
byId('host').textContent = location.host;
byId('sign').hidden = false;
const kept = keptKey.get();
if (!fromAddress()) {
  if (kept === undefined) byId('key').focus();
  else void session.open(kept);
}
