/** What a started stack says of itself. */
interface Started {
  origin: string;
  dynamodbEndpoint: string;
  logFile: string;
  key: string | undefined;
}

const usualTables = 'http://127.0.0.1:8000';
const tool = 'npx --no relay-ops';

/**
 * Six or seven lines, few enough for a small terminal. Programs read those of the tables, the key and the last one, which says that it is ready.
 * @param dataFolder undefined: nothing is kept
 */
export function readyText(
  { origin, dynamodbEndpoint, logFile, key }: Started,
  dataFolder: string | undefined,
): string {
  const body = '{"model":"demo-chat","stream":true,"messages":[{"role":"user","content":"Hello!"}]}';
  const tables = dynamodbEndpoint === usualTables ? '' : `AWS_ENDPOINT_URL_DYNAMODB=${dynamodbEndpoint} `;
  const trials =
    key === undefined
      ? [`no keys yet: ${tables}${tool} key create --account me`, `${origin}/ shows models and prices`]
      : [
          `key ${key}`,
          `curl -N ${origin}/v1/chat/completions -H 'Authorization: Bearer ${key}' ` +
            `-H 'Content-Type: application/json' -d '${body}'`,
          `${tables}${tool} account show demo`,
          `${origin}/account#${key} is the customer's page`,
        ];
  return [
    `tables ${dynamodbEndpoint}`,
    ...trials,
    `Ctrl-C stops it; ${keptWords(dataFolder)}; log ${logFile}`,
    `relay ready on ${origin}/v1`,
    '',
  ].join('\n');
}

export const keptWords = (dataFolder: string | undefined): string =>
  dataFolder === undefined ? 'nothing is kept' : `data stays in ${dataFolder}`;
