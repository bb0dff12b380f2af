/** Invented region, account and credentials that all local parts share. */
export const localRegion = 'us-east-1';
export const localAccount = '000000000000';

/** Settings of SDK clients for the emulator, which accepts any credentials. */
export const localClientSettings = (endpoint: string) => ({
  endpoint,
  region: localRegion,
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
});
