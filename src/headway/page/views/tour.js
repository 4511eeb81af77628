// A tour for class: stops with a caption, a question to be answered before the model's answer is shown, and the answer.

import { make } from "./elements.js";
import { brief } from "./tokens.js";
import { termed } from "./terms.js";
import { STOPS } from "./tour_stops.js";

/** Whether a record has all that the stops speak of. */
export function canTour({ arrays, attention }) {
  const names = ["encoder.layers.0.self_attention.queries", "encoder.layers.0.feed_forward.hidden", "decoder.layers.0.cross_attention.queries"];
  return Boolean(attention.encoder && attention.cross) && names.every((name) => Object.hasOwn(arrays ?? {}, name));
}

/** tour: {at, open}, the number of the stop and whether the answer is open; go(at) leads to another stop, null ends it. */
export function tourBar(glass, tour, go) {
  const { say } = glass;
  const stop = STOPS[tour.at];
  const known = stop.answer(glass);
  const answer = make("p", { class: "tour-answer", "aria-live": "polite" });
  const show = async (chosen = null) => {
    tour.open = true;
    reveal.hidden = true;
    const found = stop.find ? await stop.find(glass, answer) : null;
    if (found === undefined && glass.inspect) return; // the answer says why
    const values = stop.find ? stop.answer(glass, found) : known;
    answer.replaceChildren(...verdict(chosen), ...termed(say, say(values.answer ?? `tour_${stop.name}_answer`, values)));
  };
  let right = null;
  const reveal = make("div", { class: "reveal" });
  if (stop.options) {
    const [texts, at] = stop.options(glass);
    right = at;
    reveal.append(...texts.map((text, number) => make("button", { type: "button", click: () => show(number) }, make("bdi", {}, brief(text, 24)))));
  } else reveal.append(make("button", { type: "button", class: "primary", click: () => show() }, say("tourReveal")));
  const verdict = (chosen) => (chosen === null ? [] : [make("b", {}, say(chosen === right ? "tourRight" : "tourWrong")), " "]);
  if (tour.open) show();
  const button = (name, text, act, disabled = false) => make("button", { type: "button", "aria-label": say(name), title: say(name), disabled, click: act }, text);
  return make(
    "aside",
    { class: "tour", role: "region", "aria-label": say("tour") },
    make(
      "header",
      {},
      make("b", {}, say(`tour_${stop.name}_title`)),
      make("span", { class: "quiet" }, say("tourStop", { number: tour.at + 1, count: STOPS.length })),
      make("span", { class: "tools" }, button("tourBack", "←", () => go(tour.at - 1), tour.at === 0), button("tourOn", "→", () => go(tour.at + 1), tour.at === STOPS.length - 1), button("tourEnd", "✕", () => go(null))),
    ),
    make("p", {}, termed(say, say(`tour_${stop.name}_text`, known))),
    make("p", { class: "predict" }, make("b", {}, `${say("tourPredict")} `), say(`tour_${stop.name}_question`, known)),
    reveal,
    answer,
  );
}

/** Leads the box to a stop. -> the name of its view */
export function enterStop(glass, at) {
  const stop = STOPS[at];
  stop.enter(glass);
  return stop.view;
}

/** The stop that a key leads to, or undefined; canvases, lists and fields keep their arrow keys. */
export function stopByKey(tour, event) {
  if (event.target.closest("canvas, input, select, textarea, [role=tab]")) return undefined;
  const to = { ArrowRight: tour.at + 1, ArrowLeft: tour.at - 1, Escape: null }[event.key];
  return to === null || STOPS[to] ? to : undefined;
}
