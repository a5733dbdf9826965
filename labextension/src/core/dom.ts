/** DOM elements from plain values. Text becomes text, never markup; there is no way to pass a handler by name. */

export type Child = Node | string | number | null | undefined | false;
type Attribute = string | number | boolean | null | undefined | ((event: never) => void);

/** `h('button', { class: 'a', onclick: f, 'aria-label': 'x' }, 'text', child)`. A value of null, undefined or false is left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...nodes(children));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  element.append(...nodes(children));
  return element;
}

function set(element: Element, attributes: Record<string, Attribute>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name.replace(/^on/, ''), value as EventListener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
}

function nodes(children: Child[]): (Node | string)[] {
  return children
    .filter((child): child is Node | string | number => child !== null && child !== undefined && child !== false)
    .map(child => (typeof child === 'number' ? String(child) : child));
}

/** Something that was made and has to be undone. */
export interface Disposable {
  dispose(): void;
}

/** Listeners and observers that end together. */
export class Disposables implements Disposable {
  private readonly ends: (() => void)[] = [];

  add(end: () => void): void {
    this.ends.push(end);
  }

  on<E extends Event>(target: EventTarget, name: string, act: (event: E) => void, options?: AddEventListenerOptions): void {
    target.addEventListener(name, act as EventListener, options);
    this.add(() => target.removeEventListener(name, act as EventListener, options));
  }

  dispose(): void {
    for (const end of this.ends.splice(0).reverse()) {
      end();
    }
  }
}
