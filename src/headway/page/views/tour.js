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
  const button = (name, text, act, disabled = false) => make("button", { type: "button", "aria-label": say(name), title: say(name), disabled, click: act }, text);
  return make(
    "aside",
    { class: stop ? "tour" : "tour end", role: "region", "aria-label": say("tour") },
    make(
      "header",
      {},
      make("b", {}, say(`tour_${stop?.name ?? "end"}_title`)),
      make("span", { class: "quiet" }, stop ? say("tourStop", { number: tour.at + 1, count: STOPS.length }) : null),
      make("span", { class: "tools" }, button("tourBack", "←", () => go(tour.at - 1), tour.at === 0), button("tourOn", "→", () => go(tour.at + 1), !stop), button("tourEnd", "✕", () => go(null))),
    ),
    stop ? stopParts(glass, tour, stop) : endParts(glass, go),
  );
}

/** What was seen, questions with their answers, and the views to go on with. */
function endParts(glass, go) {
  const { say } = glass;
  const seen = ["tokens", "attention", "cross", "next"].map((name) => make("li", {}, termed(say, say(`tour_end_${name}`))));
  const questions = [1, 2, 3].map((number) => make("details", {}, make("summary", {}, say(`tour_end_question${number}`)), make("p", { class: "tour-answer" }, say(`tour_end_answer${number}`))));
  const leave = (view) => {
    glass.open(view);
    go(null);
  };
  const ways = ["needs", "whatIf", "numbers"].map((view) => make("button", { type: "button", click: () => leave(view) }, say(`view_${view}`)));
  return [make("ul", { class: "seen-list" }, seen), make("p", { class: "predict" }, make("b", {}, say("tour_end_ask"))), ...questions, make("p", { class: "reveal" }, make("b", {}, say("tour_end_on")), ways)];
}

/** The text of a stop, its question, and the answer once it is asked for. */
function stopParts(glass, tour, stop) {
  const { say } = glass;
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
    const texts = stop.options(glass);
    [right] = texts;
    reveal.append(...texts.toSorted().map((text) => make("button", { type: "button", click: () => show(text) }, make("bdi", {}, brief(text, 24)))));
  } else reveal.append(make("button", { type: "button", class: "primary", click: () => show() }, say("tourReveal")));
  const verdict = (chosen) => (chosen === null ? [] : [make("b", {}, say(chosen === right ? "tourRight" : "tourWrong")), " "]);
  if (tour.open) show();
  return [
    make("p", {}, termed(say, say(known.text ?? `tour_${stop.name}_text`, known))),
    make("p", { class: "predict" }, make("b", {}, `${say("tourPredict")} `), say(`tour_${stop.name}_question`, known)),
    reveal,
    answer,
  ];
}

/** Leads the box to a stop. -> the name of its view; the end has that of the first */
export function enterStop(glass, at) {
  STOPS[at]?.enter(glass);
  return STOPS[at]?.view ?? "translate";
}

/** Scrolls to what a stop speaks of, or, where the card stands above that, to the card. */
export function showStop(place, at) {
  const card = place.querySelector(".tour");
  if (!card) return;
  const fixed = getComputedStyle(card).position === "fixed";
  (fixed ? place.querySelector(STOPS[at].of ?? ".panel :is(.scene, .stage)") : card)?.scrollIntoView();
}

/** The stop that a key leads to, or undefined; canvases, lists and fields keep their arrow keys. */
export function stopByKey(tour, event) {
  if (event.target.closest("canvas, input, select, textarea, [role=tab]")) return undefined;
  const to = { ArrowRight: tour.at + 1, ArrowLeft: tour.at - 1, Escape: null }[event.key];
  return to === null || (to >= 0 && to <= STOPS.length) ? to : undefined;
}
