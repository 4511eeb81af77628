// The page of the server: type, and the translation comes as you pause.

import { listenForFiles } from "./files.js";
import { forget, past, remember } from "./history.js";
import { namesAnother, showInside } from "./inside.js";
import { judge, wordElements } from "./judging.js";
import { analysesFor, areInspected, exampleButtons, modelLine, modelsFor } from "./models.js";
import { sentencesOf } from "./sentences.js";
import { get, inspectInTurn, post } from "./server.js";
import { choosePageLanguage, fillWords, languageName, otherLanguage, pageLanguage, say } from "./words.js";

const ALTERNATIVES = 2;
const [SURE, NAMED] = [0.9, 3];
const $ = (id) => document.getElementById(id);
const state = {
  language: pageLanguage(),
  languages: [],
  models: [],
  limit: Infinity,
  kinds: [],
  delay: 500,
  timer: 0,
  running: null,
  looking: new AbortController(),
  judging: null,
  answer: "",
  words: [],
  status: [null],
  numbers: { missing: [], invented: [] },
};

start();

async function start() {
  listen();
  showWords();
  try {
    const [settings, known] = await Promise.all([get("frontend/settings"), get("languages")]);
    const languages = known.map((one) => ({ ...one, targets: one.targets.filter((code) => code !== one.code) }));
    Object.assign(state, { languages, models: settings.models, limit: settings.charLimit, delay: settings.frontendTimeout, kinds: settings.supportedFilesFormat });
    $("file").accept = state.kinds.join();
    $("key-form").hidden = !settings.keyRequired;
    const { text, from = settings.language.source.code, to = settings.language.target.code } = linked();
    showLanguages(from, to);
    if (text) $("text").value = text;
    showWords();
    await translate();
    $("inside").open ||= Boolean(text); // only now: a sentence is looked into when it is translated
  } catch {
    showStatus("unreachable", {}, true);
  }
}

/** What a link to the inside holds: {text, from, to}, each perhaps undefined. */
function linked() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** Shows the sentence of an address that was gone back to, or pasted. The view in it is the glass box's. */
async function follow() {
  const { text, from = $("source").value, to = $("target").value } = linked();
  const isHere = from === $("source").value && to === $("target").value;
  if (!text || (isHere && $("inside").open && !namesAnother($("glass")))) return;
  showLanguages(from, to);
  $("sentence").value = text;
  if (chosenSentence() !== text) $("text").value = text;
  showCount();
  await translate();
  $("inside").open = true;
}

function listen() {
  window.addEventListener("popstate", follow);
  $("text").addEventListener("input", (event) => {
    showCount();
    translateSoon(event.isComposing ? 2 : 1); // a syllable of Hangul may grow yet
  });
  $("text").addEventListener("compositionend", () => translateSoon());
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate();
  });
  $("source").addEventListener("change", () => {
    showTargets($("target").value);
    translate();
  });
  $("target").addEventListener("change", () => {
    showTarget();
    translate();
  });
  $("key").addEventListener("change", translate);
  $("key-form").addEventListener("submit", (event) => event.preventDefault());
  $("swap").addEventListener("click", swap);
  $("clear").addEventListener("click", () => write(""));
  $("copy").addEventListener("click", copy);
  $("forget").addEventListener("click", () => {
    forget();
    showHistory();
  });
  $("past").addEventListener("toggle", showHistory);
  $("inside").addEventListener("toggle", look);
  $("look-inside").addEventListener("click", () => {
    $("inside").open = true;
    $("inside").scrollIntoView();
    $("inside").querySelector("summary").focus({ preventScroll: true });
  });
  $("sentence").addEventListener("change", look);
  const tellOfFile = listenForFiles({
    asked: () => ({ source: $("source").value, target: $("target").value, ...key() }),
    language: () => state.language,
    problem: ({ status, message }) => say(state.language, refusalWord(status), { problem: message }),
  });
  $("page-language").addEventListener("click", () => {
    [state.language] = otherLanguage(state.language);
    choosePageLanguage(state.language);
    showWords();
    showLanguages($("source").value, $("target").value);
    showStatus(...state.status);
    tellOfFile();
    showDetected();
    showNumbers();
    showJudged();
    look({ turned: true });
  });
}

function translateSoon(patience = 1) {
  clearTimeout(state.timer);
  state.timer = setTimeout(translate, patience * state.delay);
}

async function translate() {
  clearTimeout(state.timer);
  state.running?.abort();
  state.judging?.abort();
  const running = (state.running = new AbortController());
  const text = $("text").value;
  const [source, target] = [$("source").value, $("target").value];
  if (!text.trim() || !target || length(text) > state.limit) {
    showAnswer("", []);
    showStatus(length(text) > state.limit ? "tooLong" : null, { limit: state.limit }, true);
    look();
    return;
  }
  showStatus("waiting");
  try {
    const found = await post(
      "translate",
      { q: text, source, target, alternatives: ALTERNATIVES, ...key() },
      { signal: running.signal, busy: () => showStatus("busy") },
    );
    showStatus(null);
    showAnswer(found.translatedText, found.alternatives, found.detectedLanguage, found.numbers);
    remember({ source, target, text, translation: found.translatedText }, showHistory);
    look();
    judgeAnswer(text);
  } catch (problem) {
    if (problem.name === "AbortError") return; // the text has changed
    showAnswer("", []);
    const undetected = problem.status === 400 && source === "auto" && problem.message.startsWith("source:");
    showStatus(undetected ? "undetected" : refusalWord(problem.status), { problem: problem.message }, true);
  }
}

/** The phrase for an answer that is none. */
function refusalWord(status) {
  if (status === 0) return "unreachable";
  if (status === 403) return $("key").value ? "keyWrong" : "keyMissing";
  if (status === 429 || status === 503) return "busyStill";
  return status >= 500 ? "defect" : "refused";
}

/** Shows the inside of what is translated, where that is open: of the sentence that is chosen. turned: to the other language
 * of the page, so that what was asked for is still wanted; else it is of the text before. */
function look({ turned = false } = {}) {
  if (!turned) {
    state.looking.abort();
    state.looking = new AbortController();
  }
  if (!$("inside").open) return;
  const { signal } = state.looking;
  const [source, target] = [$("source").value, $("target").value];
  const notice = (name, values) => ($("inside-notice").textContent = name ? say(state.language, name, values) : "");
  if (!areInspected(state.models)) {
    notice("insideNeedsTorch");
    return;
  }
  const inspect = (text, options) => {
    const tries = options.analyses?.includes("head_importance") ? 1 : undefined; // too much work to ask for again and again
    return inspectInTurn({ q: text, source, target, ...options, ...key() }, { signal, tries });
  };
  const analyses = (record) => analysesFor(state.models, record, target);
  showInside($("glass"), { text: chosenSentence(), inspect, analysesFor: analyses, language: state.language, languages: { from: source, to: target }, notice });
}

/** Finds out how sure the model is of what it has written. Where that can't be told, the page doesn't tell it. */
async function judgeAnswer(text) {
  if (!areInspected(state.models)) return;
  const { signal } = (state.judging = new AbortController());
  const [source, target] = [sourceLanguage(), $("target").value];
  const inspect = (sentence, options) =>
    inspectInTurn({ q: sentence, source, target, ...options, ...key() }, { signal, tries: 1 });
  try {
    state.judged = await judge({ text, source, translation: state.answer, target, words: state.words, inspect });
  } catch {
    return; // the text has changed, or is too long, or the server is busy
  }
  if (!signal.aborted) showJudged();
}

/** The language of the text: as it was chosen, or found. */
function sourceLanguage() {
  return $("source").value === "auto" ? state.detected : $("source").value;
}

function chosenSentence() {
  const sentences = sentencesOf($("text").value, sourceLanguage()).map((one) => one.text);
  const chosen = Math.max(0, sentences.indexOf($("sentence").value));
  $("sentences").hidden = sentences.length < 2;
  $("sentence").replaceChildren(...sentences.map((one, place) => new Option(one, one, false, place === chosen)));
  return sentences[chosen];
}

function swap() {
  const [source, target, answer] = [sourceLanguage(), $("target").value, state.answer];
  showLanguages(target, source);
  write(answer || $("text").value);
}

async function copy() {
  try {
    await navigator.clipboard.writeText(state.answer);
  } catch {
    getSelection().selectAllChildren($("translation")); // a page without TLS may not reach the clipboard
    document.execCommand("copy");
  }
  showStatus("copied");
}

function write(text) {
  $("text").value = text;
  showCount();
  translate();
  $("text").focus();
}

function key() {
  return $("key").value ? { api_key: $("key").value } : {};
}

/** Counts as the server does: characters, not halves of surrogate pairs. */
function length(text) {
  return [...text].length;
}

function showWords() {
  fillWords(state.language);
  $("file-kinds").textContent = say(state.language, "fileHint", { kinds: state.kinds.join(" ") });
  showCount();
}

function showLanguages(source, target) {
  const sources = state.languages.filter((one) => one.targets.length).map((one) => one.code);
  fill($("source"), ["auto", ...sources], sources.includes(source) ? source : "auto");
  showTargets(target);
}

function showTargets(target) {
  const source = $("source").value;
  const targets = new Set(state.languages.flatMap((one) => (["auto", one.code].includes(source) ? one.targets : [])));
  fill($("target"), [...targets], target);
  showTarget();
}

/** Shows the parts of the page that depend on the chosen languages. */
function showTarget() {
  showSwap();
  const models = modelsFor(state.models, $("source").value, $("target").value);
  const names = languageNames();
  $("models").parentElement.hidden = !models.length;
  $("models").replaceChildren(...models.map((model) => item("li", modelLine(model, state.language, names))));
  const buttons = exampleButtons(models, (text, { source, target }) => {
    showLanguages(source, target);
    write(text);
  });
  $("examples").hidden = !buttons.length;
  $("examples").lastElementChild.replaceChildren(...buttons);
}

/** Languages can be swapped where a model goes the other way. */
function showSwap() {
  const source = sourceLanguage();
  $("swap").disabled = !state.languages.some((one) => one.code === $("target").value && one.targets.includes(source));
}

function languageNames() {
  return Object.fromEntries(state.languages.map((one) => [one.code, one.name]));
}

function fill(select, codes, chosen) {
  const names = languageNames();
  select.replaceChildren(
    ...codes.map((code) => {
      const name = code === "auto" ? say(state.language, "auto") : languageName(state.language, code, names[code]);
      return new Option(name, code, false, code === chosen);
    }),
  );
}

function showAnswer(text, others, detected, numbers = { missing: [], invented: [] }) {
  state.judging?.abort(); // that was of the answer before
  Object.assign(state, { answer: text, detected: detected?.language, confidence: detected?.confidence, judged: null });
  state.words = wordElements(text, $("target").value);
  $("translation").replaceChildren(...state.words.map(({ element }) => element));
  $("translation").lang = $("target").value.replaceAll("_", "-");
  state.numbers = numbers;
  showNumbers();
  showJudged();
  $("copy").disabled = !text;
  $("look-inside").hidden = !text;
  $("others").hidden = !others?.length;
  $("alternatives").replaceChildren(...(others ?? []).map((other) => item("li", other, $("target").value)));
  showDetected();
  showSwap();
}

function showDetected() {
  const { language, detected, confidence } = state;
  const found = detected === $("target").value ? "already" : "detected";
  $("detected").textContent = confidence ? say(language, found, { language: languageName(language, detected) }) : ""; // 0: of a text without letters
}

/** Names the numbers that the translation lacks or invents. */
function showNumbers() {
  const { missing, invented } = state.numbers;
  const phrases = Object.entries({ numbersMissing: missing, numbersInvented: invented }).filter(([, found]) => found.length);
  $("numbers").textContent = phrases.map(([name, found]) => say(state.language, name, { numbers: found.join(" · ") })).join(" ");
}

/** Shows the model's confidence in each word, and whether it heeded the text. */
function showJudged() {
  const { shares, detached } = state.judged ?? { shares: new Map(), detached: false };
  const percent = (share) => (share < 0.01 ? "<1%" : Math.min(0.99, Math.floor(share * 100) / 100).toLocaleString(state.language, { style: "percent" }));
  for (const [place, share] of shares) {
    const { element } = state.words[place];
    element.title = percent(share);
    element.style.setProperty("--doubt", (1 - share).toFixed(3));
  }
  const doubtful = [...shares].filter(([, share]) => share < SURE).sort(([, one], [, other]) => one - other);
  const named = doubtful.slice(0, NAMED).map(([place, share]) => `${state.words[place].element.textContent} ${percent(share)}`);
  const isAll = shares.size && state.words.every(({ isWord }, place) => !isWord || shares.has(place)); // long texts are judged in part
  $("sureness").textContent = named.length
    ? say(state.language, "leastSure", { words: named.join(" · ") })
    : isAll
      ? say(state.language, "allSure", { share: percent(Math.min(...shares.values())) })
      : "";
  $("detached").textContent = detached ? say(state.language, "detached") : "";
}

function showHistory() {
  if (!$("past").open) return;
  $("history").replaceChildren(
    ...past().map((entry) => {
      const button = item("button", String(entry.text));
      button.type = "button";
      const translation = item("span", String(entry.translation), entry.target);
      translation.className = "muted";
      button.append(translation);
      button.addEventListener("click", () => {
        showLanguages(entry.source, entry.target);
        write(String(entry.text));
      });
      const line = document.createElement("li");
      line.append(button);
      return line;
    }),
  );
}

function item(tag, text, language) {
  const element = document.createElement(tag);
  element.textContent = text;
  element.dir = "auto";
  if (language) element.lang = language.replaceAll("_", "-");
  return element;
}

function showCount() {
  const count = length($("text").value);
  $("count").textContent = Number.isFinite(state.limit)
    ? say(state.language, "limit", { count: count.toLocaleString(state.language), limit: state.limit.toLocaleString(state.language) })
    : "";
  $("count").classList.toggle("too-long", count > state.limit);
}

function showStatus(name, values = {}, isProblem = false) {
  state.status = [name, values, isProblem];
  $("status").textContent = name ? say(state.language, name, values) : "";
  $("status").classList.toggle("wrong", isProblem && name !== null);
  document.querySelector(".answer").classList.toggle("waiting", ["waiting", "busy"].includes(name));
}
