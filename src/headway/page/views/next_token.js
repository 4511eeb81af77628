// The next token by sampling: sliders for temperature, top-k and top-p, and draws that are counted.

import { asShown, sourceAsItWas } from "./asking.js";
import { make } from "./elements.js";
import { decimal, matrixOf, openNumbers, percent, rowOf, whole } from "./numbers.js";
import { drawn, entropy, ranked, sampled } from "./sampling.js";
import { brief, loosePiece } from "./tokens.js";

const NEUTRAL = { temperature: 1, topK: 0, topP: 1 };
const STOPS = {
  temperature: Array.from({ length: 20 }, (_, at) => (at + 1) / 10),
  topK: [1, 2, 3, 4, 5, 7, 10, 20, 50, 100, 0],
  topP: Array.from({ length: 20 }, (_, at) => (at + 1) / 20),
};
const MANY = 100;

/** now() -> the step that is shown. -> {element, draw} */
export function nextToken(glass, now) {
  const { say } = glass;
  const chosen = glass.kept("sampling", { ...NEUTRAL }, true);
  const table = make("tbody", {});
  const kept = make("p", { class: "quiet" });
  const command = make("code", {});
  const status = make("p", { class: "quiet status", role: "status" });
  const draws = glass.kept("draws", { tally: null });
  let step = null;
  const source = logitsOf(glass, status);
  const draw = () => {
    const settings = JSON.stringify([now(), chosen]);
    if (draws.tally?.settings !== settings) {
      draws.tally = { settings, counts: new Map(), total: 0 };
      status.textContent = "";
    }
    const { tally } = draws;
    if (step?.number !== now() || !step.tokens) step = stepOf(glass, now(), source.known());
    const probabilities = step.tokens && sampled(step.tokens, chosen);
    table.replaceChildren(...rows(glass, step, probabilities, tally));
    kept.textContent = probabilities ? about(glass, step.tokens, probabilities) : "";
    command.textContent = `--sample ${commandOf(chosen)}`;
    for (const one of sliders) one.show();
    return probabilities;
  };
  const change = async () => {
    const known = source.known() ?? (await source.load());
    draw();
    return known;
  };
  const sliders = Object.keys(STOPS).map((name) => slider(say, name, chosen, change));
  const take = async (count) => {
    if (!(await change())) return;
    const probabilities = draw();
    const { tally } = draws;
    let place = null;
    for (let one = 0; one < count; one++) {
      place = drawn(probabilities, Math.random());
      tally.counts.set(place, (tally.counts.get(place) ?? 0) + 1);
    }
    tally.total += count;
    draw();
    const token = step.names.get(step.tokens.ids[place]) ?? say("anotherToken");
    status.textContent = count === 1 ? say("drawnOne", { token, total: tally.total }) : say("drawnMany", { total: tally.total });
  };
  const button = (name, act) => make("button", { type: "button", click: act }, say(name));
  const reset = () => {
    Object.assign(chosen, NEUTRAL);
    draw();
  };
  const head = ["samplingToken", "", "samplingBefore", "samplingAfter", "samplingDrawn"].map((name) => (name ? make("th", { scope: "col" }, say(name)) : make("td", { class: "track" })));
  const element = make(
    "section",
    { class: "sampling", pointerenter: () => source.known() ?? change(), focusin: () => source.known() ?? change() },
    make("h3", {}, say("samplingTitle")),
    make("p", { class: "quiet" }, say("samplingText")),
    make(
      "div",
      { class: "sampling-parts" },
      make("div", { class: "settings" }, sliders.map((one) => one.element), make("p", {}, command), button("samplingReset", reset)),
      make(
        "div",
        {},
        make("table", { class: "draws" }, make("thead", {}, make("tr", {}, head)), table),
        kept,
        make("div", { class: "controls" }, button("drawOne", () => take(1)), button("drawHundred", () => take(MANY))),
        status,
      ),
    ),
  );
  return { element, draw };
}

/** The logits of a record, which a live model gives when they are asked for. -> {known(), load()}: the array, or null */
function logitsOf(glass, status) {
  const { record } = glass;
  const kept = glass.kept("logits", { array: null });
  kept.array ??= glass.get("logits");
  let asked = null;
  const load = async () => {
    if (kept.array || !glass.inspect) return kept.array;
    asked ??= glass.request(sourceAsItWas(record), { ...asShown(record), arrays: ["logits"] }, status);
    const answer = await asked;
    asked = null;
    if (answer?.target.text === record.target.text) kept.array = openNumbers(answer)("logits");
    return kept.array;
  };
  return { known: () => kept.array, load };
}

/** A step: {number, top, names, others, tokens}; tokens: all, ranked, or null where only the likeliest are known. */
function stepOf({ record }, number, array) {
  const { top } = record.steps[number];
  const names = new Map(top.map(({ id, piece }) => [id, brief(loosePiece(piece), 16)]));
  const others = record.model.config.target_vocab_size - top.length;
  if (!array) return { number, top, names, others, tokens: null };
  const logits = Float64Array.from(rowOf(matrixOf(array), number));
  const most = logits.reduce((one, other) => Math.max(one, other));
  const sum = most + Math.log(logits.reduce((total, logit) => total + Math.exp(logit - most), 0));
  for (let id = 0; id < logits.length; id++) logits[id] -= sum;
  for (const { id, probability } of top) logits[id] = Math.log(probability); // stored with more digits
  return { number, top, names, others, tokens: ranked(logits) };
}

/** A row for each of the likeliest tokens, and one for all others. probabilities: null for those of the model. */
function rows({ say }, { top, names, others, tokens }, probabilities, { counts, total }) {
  const places = top.map(({ id }) => tokens?.ids.indexOf(id));
  const known = top.map(({ id, probability }, at) => ({
    name: names.get(id),
    before: probability,
    after: probabilities?.[places[at]] ?? probability,
    count: counts.get(places[at]) ?? 0,
  }));
  const own = new Set(places);
  const rest = (part, all) => Math.max(0, known.reduce((left, one) => left - one[part], all));
  const before = rest("before", 1);
  const after = probabilities?.reduce((sum, share, place) => (own.has(place) ? sum : sum + share), 0) ?? before;
  const last = { name: say("otherTokens", { count: whole(others) }), before, after, count: rest("count", total) };
  return [...known, ...(others > 0 ? [last] : [])].map((one) => {
    const cut = probabilities && one.after === 0;
    const lengths = { "--share": one.after.toFixed(4), "--before": one.before.toFixed(4) };
    return make(
      "tr",
      { class: cut ? "cut" : null },
      make("th", { scope: "row" }, make("bdi", {}, one.name)),
      make("td", { class: "track", ...lengths }, make("span", { class: "bar" })),
      make("td", {}, percent(one.before)),
      make("td", {}, cut ? say("samplingCut") : percent(one.after)),
      make("td", {}, total ? one.count : ""),
    );
  });
}

function about({ say }, tokens, probabilities) {
  const [bits, before] = [probabilities, sampled(tokens, NEUTRAL)].map((one) => decimal(entropy(one)));
  const kept = probabilities.reduce((count, share) => (share > 0 ? count + 1 : count), 0);
  return say("samplingKept", { kept: whole(kept), count: whole(probabilities.length), bits, before });
}

/** The value of `headway translate --sample`. */
function commandOf({ temperature, topK, topP }) {
  return [`temperature=${temperature}`, topK ? `top_k=${topK}` : null, topP < 1 ? `top_p=${topP}` : null].filter((part) => part).join(",");
}

/** -> {element, show}; change() is called when chosen[name] has changed. */
function slider(say, name, chosen, change) {
  const stops = STOPS[name];
  const output = make("output", { class: "number", "aria-live": "off" });
  const input = make("input", {
    type: "range",
    min: 0,
    max: stops.length - 1,
    "data-name": name,
    input: () => {
      chosen[name] = stops[Number(input.value)];
      change();
    },
  });
  const show = () => {
    input.value = stops.indexOf(chosen[name]);
    const text = chosen[name] === 0 || (name === "topP" && chosen[name] === 1) ? say("keepsAll") : `${chosen[name]}`;
    input.setAttribute("aria-valuetext", text);
    output.textContent = text;
  };
  return { element: make("label", { class: "slider" }, make("span", {}, say(`sampling_${name}`)), input, output), show };
}
