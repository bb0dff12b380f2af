/**
 * Who signs an operator's requests: the ARN that STS knows for the credentials, which needs no permission. Must never stop
 * what it is asked for: without an answer the access key names the caller, which AWS's own logs lead to a person.
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
 */
import { textOf } from '../aws/xml-text.ts';
import { callAws, type AwsCaller } from './aws-call.ts';

const timeoutMs = 3000;

/**
 * The name of the caller, asked for at the first use.
 * @param accessKey throws when there are no credentials
 */
export function callerIdentity(caller: AwsCaller, accessKey: () => Promise<string>): () => Promise<string> {
  let asked: Promise<string> | undefined;
  return () => {
    asked ??= arnOf(caller).catch(accessKey);
    return asked;
  };
}

async function arnOf(caller: AwsCaller): Promise<string> {
  const xml = await callAws(caller, {
    service: 'sts',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ Action: 'GetCallerIdentity', Version: '2011-06-15' }).toString(),
    timeoutMs,
  });
  const arn = textOf(xml, 'Arn');
  if (!arn) throw new Error('STS answered without an ARN');
  return arn;
}
