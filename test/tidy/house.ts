/** What the rules have to know: the exceptions with their reasons. */

/** Where a channel type's name may stand as a value. */
export const typeNameHolders: Record<string, string> = {
  'infra/local/seed.ts': 'rows are data',
  'infra/local/host/local-options.ts': 'the variable OPENAI_API_KEY, which is public',
  'shared/endpoints/messages/canonical.ts': 'headers of the API are named after the vendor',
  'shared/endpoints/messages/budget.ts': 'headers of the API are named after the vendor',
  'shared/config/rows/account-row.ts': 'the attribute anthropic_profile, which is public',
  'infra/ops/fields/account-fields.ts': 'the attribute anthropic_profile, which is public',
  'shared/endpoints/routes.ts': 'headers of the API are named after the vendor',
  'shared/upstreams/restricted-fields.ts': 'fields of gateways, which are named after vendors',
  'shared/config/rows/secret-reference.ts': 'the variable OPENAI_API_KEY, which is public',
  'shared/upstreams/types/bedrock.ts': 'paths of its endpoint are named after the vendors',
  'infra/local/vendors/anthropic.ts': 'a double of the vendor',
  'infra/local/vendors/bedrock.ts': 'the service that a signature names',
  'infra/local/vendors/gemini.ts': 'a double of the vendor',
  'infra/local/vendors/messages/betas.ts': 'features of the vendors by name',
  'infra/local/vendors/messages/rules.ts': 'the header of betas, which is public',
  'infra/local/vendors/openai.ts': 'a double of the vendor',
  'infra/local/vendors/vendors.ts': 'all doubles, one line each',
  'infra/stack/constructs/hosted-console.ts': 'the option bedrockModels, which is public',
  'infra/stack/constructs/operator-policies.ts': 'the service in IAM actions',
  'infra/access/policies.ts': 'the service in IAM actions',
  'shared/adapters/aws/aws-account.ts': 'the service that a signature names',
  'shared/operate/doctor.ts': 'the option bedrockModels, which is public',
  'shared/upstreams/model-rules.ts': "a vendor's models are named after it",
  'shared/upstreams/dialects/messages/request.ts': 'the header `anthropic-version` is the protocol',
  'infra/stack/options/option-table.ts': 'the option bedrockModels, which is public',
  'infra/stack/options/bedrock-models.ts': 'the option bedrockModels, which is public',
  'infra/stack/relay.ts': 'the option bedrockModels, which is public',
  'infra/deploy/deployed-options.ts': 'the option bedrockModels, which is public',
  'infra/stack/constructs/relay-service.ts': 'the option bedrockModels, which is public',
  'infra/stack/relay-stack.ts': 'the option bedrockModels, which is public',
};

/** Where a channel type's name may stand inside a longer text alone. */
export const typeNameExamples: Record<string, string> = {
  'shared/relay/page/page-snippets.ts': 'the client libraries of OpenAI are called openai',
  'infra/ops/cli/commands/channel.ts': 'examples in help texts',
  'infra/ops/cli/commands/statement.ts': 'examples in a help text',
};

/** Where a dialect's name may stand as a value. */
export const dialectNameHolders: Record<string, string> = {
  'shared/config/rows/channel-row.ts': 'a field of requests',
  'shared/upstreams/model-rules.ts': '`messages` is a field of chat requests',
  'infra/local/seed.ts': 'rows are data',
  'shared/upstreams/types/anthropic.ts': "the type's own dialect, and the header of its key",
  'shared/upstreams/types/azure.ts': 'the address of one dialect',
  'shared/upstreams/types/bedrock.ts': 'the dialect and the address of each model',
  'shared/upstreams/types/openai.ts': 'the headers of a key in one dialect',
  'shared/upstreams/dialects/chat/request.ts': '`messages` is a field of chat requests',
  'shared/upstreams/types/gemini.ts': '`messages` is a field of chat requests',
  'shared/operate/prices/price-list.ts': "the modes of LiteLLM's price list",
};

/** Files that print, and folders of such. */
export const printers: Record<string, string> = {
  'infra/ops/cli/': 'the process of the command line, and the command console',
  'infra/bootstrap/': 'a tool',
  'infra/build/': 'a tool',
  'infra/local/': 'a tool, and the output of functions on the local stack',
  'infra/deploy/main.ts': 'what a deployment changes, and why it is refused',
  'infra/deploy/first-deployment.ts': 'what a first deployment runs, and what that said',
  'infra/server/main.ts': 'why the server cannot start',
  'infra/stack/app.ts': 'why the stack cannot be made',
  'shared/adapters/telemetry/': 'the log of a function is what it prints',
};

/** Files that keep something for the whole module. */
export const stateHolders: Record<string, string> = {
  'infra/bootstrap/processes.mjs': 'a process that starts one other',
  'infra/local/lambda/ric-shim.cjs': 'a process that serves one event at a time',
  'infra/local/main.ts': 'a process that starts one stack',
  'shared/billing/wall-clock.ts': 'the clocks of time zones, which are the same for every request',
};
