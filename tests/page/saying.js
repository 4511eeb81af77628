// Answers with the sentences that the glass box says of a record, in the document of stand_in.js.

import { createInterface } from "node:readline";

import { measureHeads } from "./page/engine/heads.js";
import { analysesOf } from "./page/views/analysed.js";
import { blockContents } from "./page/views/blocks.js";
import { meanShare } from "./page/views/confidence.js";
import { follower } from "./page/views/follow.js";
import { measuredHeads, sentenceAbout, shortLabel } from "./page/views/head_labels.js";
import { chosenHead } from "./page/views/heads.js";
import { lookingPicture } from "./page/views/looking.js";
import { needsPart } from "./page/views/looks_and_needs.js";
import { openIn } from "./page/views/machine.js";
import { nearSentences, patchingForm } from "./page/views/patching.js";
import { stepsView } from "./page/views/steps.js";
import { tourBar } from "./page/views/tour.js";
import { STOPS } from "./page/views/tour_stops.js";
import { translateView } from "./page/views/translate.js";
import { unchanged } from "./page/views/trying.js";
import { targetWords } from "./page/views/word_bars.js";
import { speaker } from "./page/views/words.js";
import { Element, glassOf } from "./stand_in.js";

function tour(glass) {
  return STOPS.map((stop, at) => {
    stop.enter(glass);
    const values = stop.answer(glass, stop.find ? glass.record.order ?? undefined : undefined);
    const { say, chosen } = glass;
    const texts = { question: say(`tour_${stop.name}_question`, values), answer: say(values.answer ?? `tour_${stop.name}_answer`, values) };
    return { ...texts, card: tourBar(glass, { at, open: false }).textContent, options: stop.options?.(glass), values, chosen: { ...chosen }, kind: chosenHead(glass).kind, machine: structuredClone(openIn(glass)) };
  });
}

function needs(glass) {
  if (!glass.record.analyses.erasure) return [];
  return glass.record.steps.map((_, step) => {
    glass.chosen.target = step;
    const [verdict, , , tally] = needsPart(glass, analysesOf(glass));
    return [verdict.textContent, tally.textContent];
  });
}

/** What is said first, and of each word of the source and of the translation. */
function looking(glass) {
  const picture = lookingPicture(glass);
  const [detail] = picture.all("detail");
  const first = detail.textContent;
  const [source, target] = picture.all("words").map((row) => row.all("word").map((word) => (word.listeners.focus(), detail.textContent)));
  return { first, source, target };
}

function steps(glass) {
  return glass.record.steps.map((_, step) => {
    glass.chosen.target = step;
    const view = stepsView(glass);
    return [view.all("saying")[0].textContent, view.all("bars-place")[0].all("quiet")[0].textContent];
  });
}

/** Of each layer norm after a sub-layer, and of each feed-forward network, by the name of its arrays: what stands beside it. */
function blocks(glass) {
  Object.assign(glass.chosen, { source: null, target: null }); // the first row
  const names = Object.keys(glass.record.arrays).map((name) => /^((encoder|decoder)\.layers\.\d+\.(\w+))\.(?:normalised|hidden)$/u.exec(name)).filter((found) => found);
  const kindOf = (name) => (name === "feed_forward" ? "feedForward" : "addNorm");
  return Object.fromEntries(names.map(([, sublayer, stack, name]) => [sublayer, blockContents[kindOf(name)](glass, { stack, sublayer }).map((one) => one.textContent).join(" ")]));
}

/** What is said of a token on its way, by the kind of block, where the reader has let go of it. */
function followed(glass) {
  const flow = Object.assign(new Element("div"), { isConnected: true, parentElement: new Element("div") });
  const kinds = { tokens: "encoder", feedForward: "encoder", softmax: "decoder" };
  return Object.fromEntries(
    Object.entries(kinds).map(([kind, stack]) => {
      const { button, told } = follower(glass, flow, [{ element: new Element("div"), kind, about: { stack } }]);
      button.listeners.click();
      button.listeners.click(); // halts
      return [kind, told.textContent];
    }),
  );
}

/** The sentences that are tried of a text, where the model answers each with this problem. */
async function patched(text, problem) {
  const tried = [];
  const ask = async ({ other }, failed) => {
    tried.push(other);
    failed(new Error(problem));
  };
  const form = patchingForm({ record: { source: { text } }, say: speaker("en"), kept: (name, first) => first }, ask);
  form.listeners.submit({ preventDefault() {} });
  await new Promise((done) => setTimeout(done));
  return tried;
}

async function answer({ record, language, near, problem, tried, measure }) {
  if (problem !== undefined) return patched(near, problem);
  if (near) return nearSentences(near);
  if (tried) return unchanged({ say: speaker("en") }, [{ kind: "positions_off" }], tried.before, tried.now, tried.after)?.textContent ?? null;
  if (measure) {
    const layers = measure.maps.map((heads) => ({ shape: [heads.length, heads[0].length, heads[0][0].length], values: Float32Array.from(heads.flat(2)) }));
    return measureHeads(measure.kind, layers, measure.aligner);
  }
  const glass = glassOf(record, language);
  const heads = Object.keys(record.attention).flatMap((kind) =>
    measuredHeads(record, kind).map(({ layer, head, measures }) => ({ kind, layer, head, label: shortLabel(glass, kind, measures), said: sentenceAbout(glass, kind, measures).map((part) => part.textContent ?? part).join("") })),
  );
  const warned = translateView(glass).all("warned")[0].textContent;
  return { heads, looking: looking(glass), steps: steps(glass), needs: needs(glass), warned, mean: meanShare(record), blocks: blocks(glass), tour: tour(glass), followed: followed(glassOf(record, language)), words: targetWords(record) };
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await answer(JSON.parse(line))));
