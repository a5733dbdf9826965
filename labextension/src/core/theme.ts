/** Colours of the page, for canvases: they can't read CSS variables by themselves. */

import type { Disposable } from './dom';

/** `var(--name)` as the element sees it, or the fallback. */
export function colour(element: Element, name: string, fallback: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim() || fallback;
}

/** Is the ground that the element stands on dark? */
export function isDark(element: Element): boolean {
  for (let at: Element | null = element; at; at = at.parentElement ?? ((at.getRootNode() as Partial<ShadowRoot>).host ?? null)) {
    const parts = getComputedStyle(at).backgroundColor.match(/[\d.]+/g)?.map(Number);
    if (parts && parts.length >= 3 && (parts[3] ?? 1) > 0.5) {
      const [r = 255, g = 255, b = 255] = parts;
      return 0.299 * r + 0.587 * g + 0.114 * b < 128;
    }
  }
  return false;
}

/** Calls back when the page changes its theme: JupyterLab writes it into attributes of the body, other pages follow the system. */
export function onTheme(act: () => void): Disposable {
  const observer = new MutationObserver(act);
  for (const root of [document.body, document.documentElement]) {
    observer.observe(root, { attributes: true, attributeFilter: ['data-jp-theme-name', 'data-jp-theme-light', 'class', 'data-theme'] });
  }
  const query = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : null;
  query?.addEventListener('change', act);
  return {
    dispose: () => {
      observer.disconnect();
      query?.removeEventListener('change', act);
    }
  };
}
