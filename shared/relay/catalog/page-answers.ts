/**
 * Answers the customers' pages with their script, and the OpenAPI document. Loaded by the first request for one of these, since a
 * program that calls models never asks for one.
 */
import { listPriceChanges } from '../../billing/price.ts';
import { listCurrentNotices } from '../../config/settings.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { RelayRequest } from '../http/http.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import { refuse } from '../http/refusal.ts';
import { answerPage } from '../page/models-page.ts';
import {
  accountPageHtml,
  accountScriptHash,
  accountStyleHash,
  modelsLink,
  openapiDocument,
  openapiTag,
  pageScript,
  pageScriptPath,
} from '../page/built-pages.ts';
import { modelsInChinese } from '../page/chinese.ts';
import { modelsInEnglish } from '../page/english.ts';
import { listOfferedAliases, listOfferedModels, listPlans } from './catalog-lists.ts';
import { candidatesOf } from '../call/serving-channels.ts';
import { HealthRecorder } from '../health/health-recorder.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';

// The account page is the same for everyone. It must never hold data of an account, since caches may keep it.

const policy = [
  "default-src 'none'",
  `script-src '${accountScriptHash}'`,
  `style-src '${accountStyleHash}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  // No text can become markup, whatever the script does with it.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

interface PageAnswer {
  status?: number;
  body: string;
  headers: Record<string, string>;
}

export interface PageRequest {
  request: RelayRequest;
  snapshot: Snapshot;
  ports: Pick<ChatPorts, 'health' | 'clock'>;
  /** Decides which rules are in force. */
  nowMs: number;
}

/** `GET /`. */
async function answerModelsPage({ request, snapshot, ports, nowMs }: PageRequest): Promise<PageAnswer> {
  const { baseUrl, headers } = request;
  const { charges, settings } = snapshot;
  if (!settings.page)
    throw refuse('not_found', `This relay has no page. The base URL for clients is ${baseUrl}.`);
  const models = listOfferedModels(snapshot, nowMs);
  const named = request.query.get('model') ?? undefined;
  const isUnknown = named !== undefined && !models.includes(named);
  const accept = headers['accept'] ?? '';
  // A person sees the list of models; a program gets an error.
  if (isUnknown && !accept.includes('text/html'))
    throw refuse('model_not_found', `There is no model of that name here. ${baseUrl}/models lists them.`);
  const facts = {
    words: wantsChinese(request) ? modelsInChinese : modelsInEnglish,
    baseUrl,
    model: isUnknown ? undefined : named,
    isUnknown,
    models,
    modelFacts: settings.modelFacts ?? {},
    aliases: listOfferedAliases(snapshot, models),
    resting: await findCoolingModels(ports, snapshot),
    charges,
    changes: listPriceChanges(charges, models, nowMs),
    notices: listCurrentNotices(settings, nowMs),
    nowMs,
    timeZone: settings.timeZone,
    plans: listPlans(snapshot),
    contact: settings.contact,
    relayClosed: settings.relayClosed,
    accountPage: settings.accountPage,
  };
  return { ...answerPage(facts, accept), ...(isUnknown && { status: 404 }) };
}

/** The switch on the page names a language; else the first one that the browser lists and that there is. */
function wantsChinese({ query, headers }: RelayRequest): boolean {
  const listed = `${query.get('lang') ?? ''},${headers['accept-language'] ?? ''}`;
  return /(?:^|,)\s*(zh|en)\b/i.exec(listed)?.[1]?.toLowerCase() === 'zh';
}

/** `GET /account`. A program that asks for it means `/v1/account`. */
function answerAccountPage({ request, snapshot }: PageRequest): PageAnswer {
  const { page: hasPage, accountPage: isOn } = snapshot.settings;
  if (!isOn || !(request.headers['accept'] ?? '').includes('text/html'))
    throw refuse('not_found', `There is nothing at /account. Your account is at ${request.baseUrl}/account.`);
  return {
    body: hasPage ? accountPageHtml : accountPageHtml.replace(modelsLink, ''),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      vary: 'accept',
    },
  };
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

/** `GET /v1/openapi.json`. It changes only with the deployed version, so a client that has this version gets 304. */
function answerDocument({ request }: PageRequest): PageAnswer {
  // Caches on the way may have marked the tag as weak.
  const known = (request.headers['if-none-match'] ?? '')
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''));
  const isKnown = known.includes(openapiTag);
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'public, max-age=300',
    etag: openapiTag,
  };
  return isKnown ? { status: 304, body: '', headers } : { body: openapiDocument, headers };
}

/** By the name of the route. */
export const pageAnswers = {
  page: answerModelsPage,
  account_page: answerAccountPage,
  asset: assetOf,
  openapi: answerDocument,
};

/** Finds models all of whose candidates are in cooldown, for any account. Makes no store call. */
async function findCoolingModels(
  ports: PageRequest['ports'],
  { channels, models }: Pick<Snapshot, 'channels' | 'models'>,
): Promise<ReadonlySet<string>> {
  // No account: what is known of one alone is not shown to all.
  const findHealth = await new HealthRecorder(ports).loadHealth('');
  if (findHealth === undefined) return new Set();
  const isCooling = (model: string): boolean =>
    channels
      .filter((channel) => channel.models.includes(model))
      .flatMap((channel) => candidatesOf(channel, model))
      .every((candidate) => /^(resting|blocked)$/.test(findHealth(candidate)?.is ?? ''));
  return new Set(models.filter(isCooling));
}
