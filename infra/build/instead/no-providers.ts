/** In functions, instead of the SDK's chain of credential providers: Lambda gives credentials as variables, which the client is given. */
export const defaultProvider = () => (): Promise<never> =>
  Promise.reject(new Error('A function is given its credentials.'));
