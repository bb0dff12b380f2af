/** Replaces the SDK's credential providers in functions, because Lambda passes credentials as variables. */
export const defaultProvider = () => (): Promise<never> =>
  Promise.reject(new Error('A function is given its credentials.'));
