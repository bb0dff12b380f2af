/**
 * Lists why a call is refused before it reserves, and builds the client's answer. Loaded with the first call that is refused.
 * Must never tell a client why a key is not usable.
 */
import type { Endpoint } from '../../endpoints/endpoint.ts';
import { explainStoredContent } from '../../upstreams/restricted-fields.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { RelayRequest } from '../http/http.ts';
import { refuse, toRefusal, type Refusal, type RefusalCode } from '../http/refusal.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import type { KeyLookup } from '../ports/config-store.ts';
import { findKey, judgeKey, type AdmittedKey, type KeyRefusal, type ModelRefusal } from './access.ts';
import type { UrlRefusal } from './content-urls.ts';
import type { ServingRefusal } from './serving-channels.ts';

export type CallRefusal =
  | { reason: 'route'; request: RelayRequest }
  | { reason: 'closed'; contact: string }
  | KeyRefusal
  /** Decided by the reader of the body, or by the account's balance: both have their own refusals. */
  | { reason: 'body' | 'money'; refusal: Refusal }
  /** Found by a parser. */
  | { reason: 'invalid'; error: InvalidRequest }
  | { reason: 'model_name' }
  | ModelRefusal
  | ServingRefusal
  | { reason: 'search_not_offered'; what: string }
  | { reason: 'input_too_long'; most: number }
  | UrlRefusal
  | { reason: 'background_not_offered' | 'background_too_large' }
  | { reason: 'run_too_late' | 'run_stopped' | 'run_of_other_version' }
  /** An unexpected error: the store failed, or the relay has a bug. */
  | { reason: 'fault'; error: unknown };

export function explainRefusal(refused: CallRefusal): Refusal {
  switch (refused.reason) {
    case 'route':
      return refuseRoute(refused.request);
    case 'closed': {
      const more = refused.contact === '' ? '' : ` Contact: ${refused.contact}`;
      return refuse('relay_closed', `The relay is closed at the moment.${more}`);
    }
    case 'key_conflict':
    case 'key_missing':
    case 'key_malformed':
    case 'key_unusable':
      return refuseKey(refused);
    case 'body':
    case 'money':
      return refused.refusal;
    case 'invalid':
    case 'fault':
      return toRefusal(refused.error);
    case 'model_name':
      return invalid(
        'invalid_value',
        'model',
        'model must be 1 to 128 of the characters A-Z a-z 0-9 . _ : / @ - and contain a model name besides web- and -official.',
      );
    case 'official_not_allowed':
      return refuseModel(
        'official_not_allowed',
        'This API key may not use official billing. Remove "official" and the suffix "-official".',
      );
    case 'model_not_allowed':
      return refuseModel('model_not_allowed', `This API key may not use the model "${refused.model}".`);
    case 'model_not_found':
      return refuseModel(
        'model_not_found',
        `The model "${refused.model}" is not available. GET /v1/models lists the available models.`,
        refused.why,
      );
    case 'not_capable': {
      const { model, param } = refused;
      return invalid(
        'unsupported_parameter',
        param,
        `The model "${model}" does not support '${param}' here.`,
      );
    }
    case 'stored_content':
      return invalid('unsupported_parameter', refused.param, explainStoredContent(refused.param));
    case 'form_not_offered': {
      const { model, form } = refused;
      return invalid(
        'unsupported_parameter',
        'model',
        `The model "${model}" is not offered for ${form} here.`,
      );
    }
    case 'search_not_offered':
      return invalid(
        'invalid_value',
        'model',
        `${refused.what} can't use web search. Remove the prefix "web-" from the model's name.`,
      );
    case 'input_too_long':
      return invalid(
        'max_tokens_per_request',
        'input',
        `The input has more than ${refused.most} tokens, the maximum of one request. Send fewer inputs per request.`,
      );
    case 'url': {
      const { param, isImage, problem } = refused;
      return invalid(isImage ? 'invalid_image_url' : 'invalid_url', param, `'${param}' ${problem}`);
    }
    case 'background_not_offered':
      return invalid(
        'unsupported_parameter',
        'background',
        "This relay does not support background responses: send the request without 'background', and wait for its answer.",
      );
    case 'background_too_large':
      return invalid(
        'request_too_large',
        'background',
        'The request is larger than what can be stored for a background response. Send it without background.',
      );
    case 'run_too_late':
      return refuse(
        'unavailable',
        'The response could not start in time. Nothing was charged; send the request again.',
        { reason: 'background_late' },
      );
    case 'run_stopped':
      return refuse('unavailable', 'The response was cancelled before it started.');
    case 'run_of_other_version':
      return refuse(
        'unavailable',
        'This version of the relay cannot run the response. Send the request again.',
      );
    default:
      return refused satisfies never;
  }
}

const invalid = (code: string, param: string, message: string): Refusal =>
  toRefusal(new InvalidRequest(code, param, message));

const refuseModel = (code: RefusalCode, message: string, reason?: string): Refusal =>
  refuse(code, message, { param: 'model', reason });

/** Every unusable key gets the same message; the log has the reason. */
function refuseKey(refused: KeyRefusal): Refusal {
  const { reason } = refused;
  if (reason === 'key_conflict') return refuse('invalid_api_key', refused.conflict, { reason });
  if (reason === 'key_unusable')
    return refuse('invalid_api_key', 'The API key is not valid. Check that it is complete and active.', {
      reason: refused.why,
    });
  const { shown } = refused;
  const words =
    reason === 'key_missing'
      ? `No API key was sent. Send it as the header "${shown}".`
      : `The ${shown.split(':')[0]} header does not contain an API key of this relay. Send "${shown}".`;
  return refuse('invalid_api_key', words, { reason });
}

// For requests that are not calls. Their handles answer with the thrown Refusal.

/** The key of a request. Throws a Refusal. */
export function readKey(headers: RelayRequest['headers'], form: Pick<Endpoint, 'keyHeader'> = {}): string {
  const key = findKey(form, headers);
  if (typeof key === 'object') throw refuseKey(key);
  return key;
}

/** Throws a Refusal unless the key is usable. */
export function admitKey(lookup: KeyLookup, nowMs: number): AdmittedKey {
  const admitted = judgeKey(lookup, nowMs);
  if ('reason' in admitted) throw refuseKey(admitted);
  return admitted;
}
