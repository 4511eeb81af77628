// A document without a browser, for views that are read as text: chips stand in ⟦⟧, explanations of terms are left out.

import { openNumbers } from "./page/views/numbers.js";
import { speaker } from "./page/views/words.js";

export class Element {
  constructor(tag) {
    this.tag = tag;
    this.children = [];
    this.listeners = {};
    this.attributes = {};
    this.dataset = {};
    this.names = new Set();
    this.style = { setProperty() {} };
    const { names } = this;
    this.classList = { add: (name) => names.add(name), remove: (name) => names.delete(name), toggle: () => {} };
  }

  append(...children) {
    this.children.push(...children);
    for (const child of children) if (child instanceof Element) child.parentElement = this;
  }

  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
    if (name === "open") this.open = true;
    if (name === "class") value.split(" ").forEach((one) => this.names.add(one));
  }

  addEventListener(name, act) {
    this.listeners[name] = act;
  }

  getBoundingClientRect() {
    return { left: 0, top: 0, width: 0, bottom: 0 };
  }

  getContext() {
    return { measureText: () => ({ width: 0 }), createImageData: (columns, rows) => ({ data: new Uint8ClampedArray(4 * columns * rows) }), putImageData() {} };
  }

  querySelector() {
    return new Element();
  }

  get textContent() {
    if (this.hidden || this.names.has("explained")) return "";
    const text = this.children.map((child) => child.textContent ?? child).join("");
    return this.names.has("chip") ? `⟦${text}⟧` : text;
  }

  set textContent(text) {
    this.children = [text];
  }

  /** All elements of a class, in order. */
  all(name) {
    const below = this.children.flatMap((child) => (child instanceof Element ? child.all(name) : []));
    return this.names.has(name) ? [this, ...below] : below;
  }
}

const WIDE = 100_000;

/** Of the beam, it gives room for all steps. */
class Observer {
  constructor(act) {
    this.observe = (element) => {
      if (element.names.has("tree-place")) element.clientWidth = WIDE;
      act();
    };
  }
}

Object.assign(globalThis, {
  document: { createElement: (tag) => new Element(tag), createElementNS: (_, tag) => new Element(tag) },
  window: { matchMedia: () => ({ matches: true }) },
  ResizeObserver: Observer,
  requestAnimationFrame: () => {},
});

export function glassOf(record, language) {
  const kept = new Map();
  const glass = { record, say: speaker(language), get: openNumbers(record), inspect: null, computes: [], measured: [], languageName: (code) => code, choose() {}, status: () => new Element("p") };
  glass.kept = (name, first) => (kept.has(name) ? kept : kept.set(name, first)).get(name);
  glass.chosen = { source: null, target: null };
  return glass;
}
