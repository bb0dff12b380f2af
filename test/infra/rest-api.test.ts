/** The API of API Gateway in the template, and what its local double rejects. */
import { describe, expect, test } from 'vitest';
import { readRestApi } from '../../infra/local/rest-api.ts';
import { createReferences, type Template as LocalTemplate } from '../../infra/local/template/template.ts';
import type { LocalFunction } from '../../infra/local/lambda/local-function.ts';
import { routes } from '../../infra/stack/constructs/function-descriptions.ts';
import { optionSets } from './option-sets.ts';
import { readable, resourcesOf, synthesize, type Template } from './synthesize.ts';

interface Integration {
  uri: unknown;
  responseTransferMode: string;
}
interface Body {
  paths: Record<
    string,
    { 'x-amazon-apigateway-any-method': { 'x-amazon-apigateway-integration': Integration } }
  >;
}

const bodyOf = (template: Template): Body =>
  resourcesOf(template, 'AWS::ApiGateway::RestApi')[0]?.[1].Properties['Body'] as Body;
const integrationOf = (template: Template, path: string): Integration | undefined =>
  bodyOf(template).paths[path]?.['x-amazon-apigateway-any-method']['x-amazon-apigateway-integration'];

const sets = Object.entries(optionSets).filter(([, { frontDoor }]) => frontDoor !== undefined);

describe.each(sets)('%s', (_, options) => {
  const { template } = synthesize(options);

  test('has no Function URL, and lets only its own API and stage call its functions', () => {
    expect(JSON.stringify(template)).not.toContain('"AuthType":"NONE"');
    expect(resourcesOf(template, 'AWS::Lambda::Url')).toEqual([]);
    const [[api] = []] = resourcesOf(template, 'AWS::ApiGateway::RestApi');
    const permissions = resourcesOf(template, 'AWS::Lambda::Permission').map(
      ([, { Properties }]) => Properties,
    );
    const ofApi = permissions.filter(({ Principal }) => Principal === 'apigateway.amazonaws.com');
    expect(ofApi).toHaveLength(6);
    for (const { SourceArn, FunctionName, Action } of ofApi) {
      expect([Action, readable(FunctionName)]).toEqual([
        'lambda:InvokeFunction',
        expect.stringMatching(/^<Functions[a-z]+Live\w+>$/),
      ]);
      expect(readable(SourceArn)).toMatch(new RegExp(`:<${api}>/relay/\\*/\\*$`));
    }
    expect(permissions.filter(({ Principal }) => Principal === '*')).toEqual([]);
  });

  test('streams the functions’ streamed answers through the alias, and routes each path like CloudFront’s patterns', () => {
    for (const { path, function: name } of routes) {
      const node = path.replace(/\/?\*$/, '');
      const { uri, responseTransferMode } =
        integrationOf(template, path === node ? node : `${node}/{proxy+}`) ?? {};
      expect(readable(uri)).toContain(`<Functions${name}Live`);
      const streams = !['catalog', 'payments', 'selfservice'].includes(name);
      expect(responseTransferMode).toBe(streams ? 'STREAM' : 'BUFFERED');
      expect(readable(uri)).toMatch(
        streams ? /response-streaming-invocations$/ : /2015-03-31.*\/invocations$/,
      );
    }
    for (const path of ['/', '/{proxy+}', '/v1/{proxy+}', '/v1/chat'])
      expect(readable(integrationOf(template, path)?.uri)).toContain('<FunctionscatalogLive');
  });
});

describe('the double of API Gateway', () => {
  const read = (change: (template: Template) => void) => {
    const { template } = synthesize(optionSets['a private API, and functions in a VPC']);
    change(template);
    const local = {
      stackName: 'relay',
      parameters: {},
      resources: template.Resources,
    } as unknown as LocalTemplate;
    const functions = new Map(
      resourcesOf(template, 'AWS::Lambda::Function').map(([id]) => [id, {} as LocalFunction]),
    );
    const api = readRestApi(createReferences(local), functions);
    const uri = `x/functions/relay-${resourcesOf(template, 'AWS::Lambda::Alias')[0]?.[0]}/invocations`;
    return api?.called(uri).isPermitted;
  };

  test('rejects a response mode that does not fit the called action', () => {
    const path = '/v1/chat/{proxy+}';
    for (const mode of ['BUFFERED', undefined])
      expect(() =>
        read(
          (template) =>
            void Object.assign(integrationOf(template, path) ?? {}, { responseTransferMode: mode }),
        ),
      ).toThrow(/chat.*Cannot use ResponseTransferMode BUFFERED .* InvokeWithResponseStream/);
  });

  test('rejects an edge-optimized API', () => {
    expect(() =>
      read((template) => {
        const [[, api] = []] = resourcesOf(template, 'AWS::ApiGateway::RestApi');
        if (api) api.Properties['EndpointConfiguration'] = { Types: ['EDGE'] };
      }),
    ).toThrow(/edge-optimized/);
  });

  test('calls no function that only another stage may call', () => {
    expect(read(() => {})).toBe(true);
    const moved = read((template) => {
      for (const [, { Properties }] of resourcesOf(template, 'AWS::Lambda::Permission'))
        Properties['SourceArn'] = 'arn:aws:execute-api:us-east-1:000000000000:other/relay/*/*';
    });
    expect(moved).toBe(false);
  });
});
