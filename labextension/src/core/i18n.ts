/** Words to show. JupyterLab's TranslationBundle fits; outside of JupyterLab the words are English. */

export interface Translate {
  __(words: string, ...values: unknown[]): string;
  _n(one: string, many: string, n: number, ...values: unknown[]): string;
}

/** %1, %2 … stand for the values, as in JupyterLab. */
function filled(words: string, values: unknown[]): string {
  return words.replace(/%(\d)/g, (all, i: string) => (Number(i) <= values.length ? String(values[Number(i) - 1]) : all));
}

export const ENGLISH: Translate = {
  __: (words, ...values) => filled(words, values),
  _n: (one, many, n, ...values) => filled(n === 1 ? one : many, [n, ...values])
};
