// The buttons that play a row of steps: play or pause, and to a step by a button or a slider.

import { make, sign } from "./elements.js";

/** last: the last step; now() -> the step that is shown; go(step): shows another, which it may refuse; pause() -> milliseconds for
 * each step; slide: the slider's label; told(playing): before it begins and after it stopped. -> {play, slider, button(name, act),
 * start(), halt(), haltAt(step), again()}; again(): with another pause, if it plays. */
export function playerOf(say, { last, now, go, pause, slide = "stepSlider", told = () => {} }) {
  let timer = null;
  const button = (name, act) => make("button", { type: "button", "aria-label": say(name), title: say(name), click: act }, sign(name));
  const label = (name) => {
    play.replaceChildren(sign(name));
    play.setAttribute("aria-label", say(name));
    play.title = say(name);
  };
  const halt = () => {
    clearInterval(timer);
    timer = null;
    label("play");
    told(false);
  };
  const goOn = () => {
    if (play.isConnected) go(now() >= last ? 0 : now() + 1);
    if (!play.isConnected || now() >= last) halt();
  };
  const start = () => {
    label("pause");
    told(true);
    timer = setInterval(goOn, pause());
    goOn();
  };
  const haltAt = (step) => {
    halt();
    go(step);
  };
  const again = () => {
    if (!timer) return;
    clearInterval(timer);
    timer = setInterval(goOn, pause());
  };
  const play = button("play", () => (timer ? halt() : start()));
  play.classList.add("primary");
  const slider = make("input", { type: "range", min: 0, max: last, "aria-label": say(slide), input: () => haltAt(Number(slider.value)) });
  return { play, slider, button, start, halt, haltAt, again };
}
