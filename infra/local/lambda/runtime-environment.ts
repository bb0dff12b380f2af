import { localRegion } from '../host/identity.ts';
import type { FunctionSettings } from './invocation.ts';

/**
 * The variables that Lambda sets. `settings.environment` overrides those above it; those below override it.
 */
export function runtimeEnvironment(
  settings: FunctionSettings,
  label: string,
  runtimeApi: string,
): Record<string, string> {
  return {
    LANG: 'en_US.UTF-8',
    TZ: ':UTC',
    AWS_REGION: localRegion,
    AWS_DEFAULT_REGION: localRegion,
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
    AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
    ...settings.environment,
    AWS_LAMBDA_FUNCTION_NAME: settings.name,
    AWS_LAMBDA_FUNCTION_VERSION: settings.version ?? '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(settings.memoryMegabytes),
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${settings.name}`,
    AWS_LAMBDA_LOG_STREAM_NAME: label,
    AWS_LAMBDA_RUNTIME_API: runtimeApi,
    LAMBDA_TASK_ROOT: settings.folder,
    _HANDLER: settings.handler,
  };
}
