/** The customers' pages and their script. Loaded by the first request for one: programs never ask for them. */
import { priceChanges } from '../../billing/price-changes.ts';
import { shownNotices } from '../../config/settings/shown-notices.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { RelayRequest } from '../http/http.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import { refuse } from '../http/refusal.ts';
import { accountPage } from '../page/page-account.ts';
import { page } from '../page/page.ts';
import { pageScript, pageScriptPath } from '../page/page-script.ts';
import { offeredAliases, offeredModels } from './model-list.ts';
import { offeredPlans } from './price-lists.ts';

interface PageAnswer {
  body: string;
  headers: Record<string, string>;
}

interface PageRequest {
  request: RelayRequest;
  snapshot: Snapshot;
  /** The models that cannot answer now. */
  resting: () => Promise<ReadonlySet<string>>;
  nowMs: number;
}

/** `GET /`. */
async function modelsPage({ request, snapshot, resting, nowMs }: PageRequest): Promise<PageAnswer> {
  const { baseUrl, headers } = request;
  const { charges, settings } = snapshot;
  if (!settings.page)
    throw refuse('not_found', `This relay has no page. The base URL for clients is ${baseUrl}.`);
  const models = offeredModels(snapshot, nowMs);
  const facts = {
    baseUrl,
    models,
    aliases: offeredAliases(snapshot, models),
    resting: await resting(),
    charges,
    changes: priceChanges(charges, models, nowMs),
    notices: shownNotices(settings, nowMs),
    nowMs,
    timeZone: settings.timeZone ?? 'UTC',
    plans: offeredPlans(snapshot),
    contact: settings.contact,
    relayClosed: settings.relayClosed,
    accountPage: settings.accountPage ?? true,
  };
  return page(facts, headers['accept'] ?? '');
}

/** `GET /account`. A program that asks for it means `/v1/account`. */
function accountsPage({ request, snapshot }: PageRequest): PageAnswer {
  const { page: hasPage, accountPage: isOn = true } = snapshot.settings;
  if (!isOn || !(request.headers['accept'] ?? '').includes('text/html'))
    throw refuse('not_found', `There is nothing at /account. Your account is at ${request.baseUrl}/account.`);
  return accountPage({ linksModels: hasPage });
}

/** `GET /assets/...`. The name has the script's hash, so an older page gets no newer script. */
function assetOf({ request, snapshot }: PageRequest): PageAnswer {
  if (request.path !== pageScriptPath || !snapshot.settings.page) throw refuseRoute(request);
  return {
    body: pageScript,
    headers: {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    },
  };
}

/** By the name of the route. */
export const pageAnswers = { page: modelsPage, account_page: accountsPage, asset: assetOf };
