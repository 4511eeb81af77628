// A file that is chosen, or dropped on the page, comes back translated.

import { get, pause, post } from "./server.js";
import { say } from "./words.js";

const EVERY = 500; // milliseconds between questions how far the server is

const $ = (id) => document.getElementById(id);

/** asked(): the other fields of a request; problem(error): the phrase that tells what went wrong. -> a function that tells
 * the same in another language */
export function listenForFiles({ asked, language, problem }) {
  const isOfFiles = (event) => event.dataTransfer?.types.includes("Files");
  const mark = (isOver) => document.body.classList.toggle("dropping", isOver);
  let told = () => "";
  const tell = () => ($("file-status").textContent = told());
  const show = (phrase, isWrong = false) => {
    told = phrase;
    tell();
    $("file-status").classList.toggle("wrong", isWrong);
  };
  let running = new AbortController();

  async function send(file) {
    if (!file) return;
    running.abort();
    const mine = (running = new AbortController());
    const { signal } = mine;
    const id = [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16)).join("");
    $("made").hidden = true;
    show(() => say(language(), "fileWaiting", { name: file.name }));
    watch(id, signal).catch(() => {}); // then without a count
    try {
      const { translatedFileUrl } = await post("translate_file", { ...asked(), file }, { signal, id });
      const last = new URL(translatedFileUrl).pathname.split("/").at(-1); // a proxy may have another address
      $("made").href = `download_file/${last}`;
      $("made").textContent = decodeURIComponent(last.slice(last.indexOf(".") + 1));
      $("made").hidden = false;
      $("made").click();
      show(() => "");
    } catch (error) {
      if (error.name !== "AbortError") show(() => problem(error), true);
    } finally {
      mine.abort();
      if (running === mine) showProgress(false);
    }
  }

  /** Shows how many sentences of the file are translated, until its request ends. */
  async function watch(id, signal) {
    showProgress(true);
    while (!signal.aborted) {
      await pause(EVERY, signal);
      const { done, sentences } = await get(`progress/${id}`);
      if (!signal.aborted && sentences) showProgress(true, { done, sentences });
    }
  }

  function showProgress(isUnderWay, count) {
    $("file-progress").hidden = !isUnderWay;
    $("file-count").textContent = count ? say(language(), "fileCount", count) : "";
    if (count) Object.assign($("file-progress"), { max: count.sentences, value: count.done });
    else $("file-progress").removeAttribute("value");
  }

  $("choose-file").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => {
    send($("file").files[0]);
    $("file").value = ""; // the same may be chosen again
  });
  addEventListener("dragover", (event) => {
    if (!isOfFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) mark(false);
  });
  addEventListener("drop", (event) => {
    if (!isOfFiles(event)) return;
    event.preventDefault();
    mark(false);
    send(event.dataTransfer.files[0]);
  });
  return tell;
}
