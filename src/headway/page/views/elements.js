// Elements of the page. Texts are always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** The font of names in a canvas. */
export const LABEL_FONT = "12px system-ui, NanumGothic, sans-serif";

/** An element with attributes (a function is a listener, `--name` a property for its style), and children: elements or texts. */
export function make(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function makeSvg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A formula: letters are variables, `_{}` and `^{}` stand below and above the line, `"..."` is upright. */
export function formula(text) {
  const parts = text.match(/[_^]\{[^}]*\}|"[^"]*"|[^_^"]+/gu) ?? [];
  return make(
    "span",
    { class: "formula", dir: "ltr" },
    parts.map((part) => {
      if (part.startsWith("_")) return make("sub", {}, part.slice(2, -1));
      if (part.startsWith("^")) return make("sup", {}, part.slice(2, -1));
      if (part.startsWith('"')) return make("span", { class: "upright" }, part.slice(1, -1));
      return part;
    }),
  );
}

/** Signs of the buttons, in a box of 16. */
const SIGNS = {
  play: "M4 2L14 8L4 14Z",
  pause: "M3 2H7V14H3ZM9 2H13V14H9Z",
  toStart: "M2 2H4V14H2ZM14 2L5 8L14 14Z",
  stepBack: "M12 2L3 8L12 14Z",
  stepOn: "M3 2H5V14H3ZM7 2L14 8L7 14Z",
  toEnd: "M12 2H14V14H12ZM2 2L11 8L2 14Z",
};

/** A sign of SIGNS, for a button. */
export function sign(name) {
  return makeSvg("svg", { class: "sign", viewBox: "0 0 16 16", "aria-hidden": "true" }, makeSvg("path", { d: SIGNS[name] }));
}

/** By the key: how many rows and columns on it leads. */
export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

let groups = 0;

/** One of several, as a row of buttons. options: [value, label]; change(value) is told. */
export function choice(label, options, chosen, change) {
  const name = `glass-choice-${groups++}`;
  return make(
    "fieldset",
    { class: "choice" },
    make("legend", {}, label),
    make(
      "span",
      { class: "options" },
      options.map(([value, text]) => {
        const input = make("input", { type: "radio", name, value, change: () => change(value) });
        input.checked = value === chosen;
        return make("label", {}, input, make("span", {}, text));
      }),
    ),
  );
}

/** One of many, as a list that opens. */
export function select(label, options, chosen, change) {
  const box = make(
    "select",
    { change: () => change(box.value) },
    options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)),
  );
  return make("label", { class: "select" }, make("span", {}, label), box);
}

/** A line that asks for a text: an input with an id, which has and changes typed.text, and a button. act(input) */
export function askingForm(typed, id, label, button, act) {
  const input = make("input", { type: "text", id, dir: "auto", value: typed.text, input: () => (typed.text = input.value) });
  const submit = (event) => {
    event.preventDefault();
    act(input);
  };
  return make("form", { class: "asking", submit }, make("label", { for: id }, label), input, make("button", { type: "submit" }, button));
}

/** Calls draw() when the element comes to have a place on the page, and when its width changes. */
export function whenSized(element, draw) {
  let width = 0;
  const measure = () => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    if (width) draw();
  };
  queueMicrotask(measure); // before the first frame, if it is placed by then
  new ResizeObserver(measure).observe(element);
}

/** Calls act() when what was just placed on the page has its height. */
export function whenDrawn(act) {
  requestAnimationFrame(() => requestAnimationFrame(act));
}

/** Does work(one) for each, one in a frame while `place` is on the page, so that the page answers meanwhile. */
export function inTurn(place, [first, ...others], work) {
  if (first === undefined) return;
  const placed = new ResizeObserver(() => {
    if (!place.clientWidth) return;
    placed.disconnect();
    setTimeout(() => {
      work(first);
      inTurn(place, others, work);
    });
  });
  placed.observe(place);
}

/** A canvas of a size in CSS pixels, sharp on every screen; its context is scaled, and ready for names. */
export function sizeCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  return context;
}

/** The number of heads in a row: all, or, of many, such that the rows are alike. */
export function columnsFor(heads) {
  if (heads <= 8) return heads;
  return [8, 7, 6, 5, 4].find((count) => heads % count === 0) ?? 8;
}

/** Escape closes the <details>, and nothing around it. */
export function closeOnEscape(details) {
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    event.stopPropagation();
    details.open = false;
    details.firstChild.focus();
  });
}
