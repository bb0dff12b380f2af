/** Region, account and credentials of everything that runs locally: made up, and the same everywhere. */
export const localRegion = 'us-east-1';
export const localAccount = '000000000000';

/** How an SDK client reaches the emulator, which takes any credentials. */
export const localClientSettings = (endpoint: string) => ({
  endpoint,
  region: localRegion,
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
});
