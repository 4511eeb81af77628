// The curves of training and validation loss over the moments of a training, with a marker.

import { make, makeSvg } from "./elements.js";
import { decimal, whole } from "./numbers.js";

const [WIDTH, HEIGHT, LEFT, BELOW, ABOVE] = [384, 180, 36, 34, 8];
const NAMES = ["training_loss", "validation_loss"];

/** -> {element, show(at)} */
export function lossPicture({ say }, moments) {
  const most = Math.max(...moments.flatMap((moment) => NAMES.map((name) => moment[name])));
  const x = (at) => LEFT + 8 + (at * (WIDTH - LEFT - 24)) / (moments.length - 1);
  const y = (value) => ABOVE + (1 - value / most) * (HEIGHT - BELOW - ABOVE);
  const text = (at, place, anchor, content) => makeSvg("text", { x: at, y: place, "text-anchor": anchor }, content);
  const apart = moments.at(-1).step < 10_000 ? 1 : 3; // so that numbers don't meet
  const curves = NAMES.map((name) => makeSvg("polyline", { class: name, points: moments.map((moment, at) => `${x(at)},${y(moment[name])}`).join(" ") }));
  const marker = makeSvg("line", { class: "marker", y1: ABOVE, y2: HEIGHT - BELOW });
  const points = NAMES.map((name) => makeSvg("circle", { class: name, r: 4 }));
  const picture = makeSvg(
    "svg",
    { class: "curves", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": say("trainingCurves", { last: decimal(moments.at(-1).validation_loss, 3), first: decimal(moments[0].validation_loss, 3) }) },
    [0, most / 2, most].map((value) => [makeSvg("line", { x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value) }), text(LEFT - 6, y(value) + 4, "end", decimal(value, 1))]).flat(),
    moments.map(({ step }, at) => ((moments.length - 1 - at) % apart ? null : text(x(at), HEIGHT - BELOW + 16, "middle", whole(step)))),
    text((LEFT + WIDTH) / 2, HEIGHT - 3, "middle", say("trainingSteps")),
    curves,
    marker,
    points,
  );
  const show = (at) => {
    for (const end of ["x1", "x2"]) marker.setAttribute(end, x(at));
    points.forEach((point, number) => {
      point.setAttribute("cx", x(at));
      point.setAttribute("cy", y(moments[at][NAMES[number]]));
    });
  };
  const legend = [["training_loss", "trainingLoss"], ["validation_loss", "validationLoss"]].map(([name, word]) =>
    make("span", {}, makeSvg("svg", { class: "curves sample", viewBox: "0 0 28 8", "aria-hidden": "true" }, makeSvg("polyline", { class: name, points: "0,4 28,4" })), ` ${say(word)}`),
  );
  return { element: make("figure", { class: "losses" }, picture, make("figcaption", { class: "quiet keys" }, legend)), show };
}
