/**
 * The Lambda function `console`: a request of its Function URL in, the console's answer out, streamed since a page may be
 * watched.
 */
import { describeStack } from '../../../../shared/operate/plan.ts';
import type { LambdaFunctionURLEvent } from 'aws-lambda';
import { trapRejections, writeBody } from '../../../../shared/adapters/entry/lambda-handlers.ts';
import { createSecretStore } from '../../../../shared/adapters/secrets/secret-store.ts';
import {
  readConsole,
  readDeployedSecrets,
  readEnvironment,
} from '../../../../shared/adapters/system/environment.ts';
import { systemClock } from '../../../../shared/adapters/system/node-ports.ts';
import { createJsonLog } from '../../../../shared/adapters/telemetry/log.ts';
import type { RelayConsole } from '../../../stack/constructs/hosted-console.ts';
import { openSession, resolveTarget } from '../../session/session.ts';
import { answerPlain } from '../guard.ts';
import { requestOf } from './event.ts';
import { createHostedConsole } from './hosted.ts';
import { createOidcLogin } from './login.ts';

const environment = readEnvironment();
const { local: isLocal, stack, version } = environment;
const log = createJsonLog(version);
trapRejections(log);
const answering = openConsole();

async function openConsole() {
  const options = readConsole() as RelayConsole;
  const target = {
    ...resolveTarget({ stack }, process.env),
    owners: readDeployedSecrets(),
    ...(isLocal && { envSecrets: environment.envSecrets }),
  };
  const { ports, portsOf } = await openSession(target, process.env);
  const secrets = createSecretStore({ environment, clock: systemClock, purpose: 'console' });
  return createHostedConsole({
    ports,
    portsOf,
    options,
    isLocal,
    where: describeStack({ stack, local: isLocal }),
    login: createOidcLogin({
      options,
      isLocal,
      clock: systemClock,
      secretOf: (reference) => secrets.read(reference),
    }),
    onFault: (error, path) => log.fault(path, error),
    onRefused: (error) => log.fault('login', error),
  });
}

export const handler = awslambda.streamifyResponse(
  async (event: LambdaFunctionURLEvent, connection, { awsRequestId: id }) => {
    const response = await answer(event).catch((error: unknown) => {
      log.fault(id, error);
      return answerPlain(500, 'Something went wrong. See the log of the function console.');
    });
    const { status: statusCode, headers } = response;
    const cookies = headers.getSetCookie();
    headers.delete('set-cookie');
    const head = { statusCode, headers: Object.fromEntries(headers), cookies };
    const stream = awslambda.HttpResponseStream.from(connection, head);
    const texts = response.body?.pipeThrough(new TextDecoderStream()) ?? '';
    await writeBody(stream, { body: texts }, (error) => log.fault(id, error));
  },
);

async function answer(event: LambdaFunctionURLEvent): Promise<Response> {
  const request = requestOf(event, environment);
  return request instanceof Request ? (await answering)(request) : request;
}
