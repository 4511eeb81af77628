// A file that is chosen, or dropped on the page, comes back translated.

import { post } from "./server.js";
import { say } from "./words.js";

const $ = (id) => document.getElementById(id);

/** asked(): the other fields of a request; problem(error): the phrase that tells what went wrong. */
export function listenForFiles({ asked, language, problem }) {
  const isOfFiles = (event) => event.dataTransfer?.types.includes("Files");
  const mark = (isOver) => document.body.classList.toggle("dropping", isOver);
  const show = (text, isWrong = false) => {
    $("file-status").textContent = text;
    $("file-status").classList.toggle("wrong", isWrong);
  };
  let running = new AbortController();

  async function send(file) {
    if (!file) return;
    running.abort();
    const { signal } = (running = new AbortController());
    $("made").hidden = true;
    show(say(language(), "fileWaiting", { name: file.name }));
    try {
      const { translatedFileUrl } = await post("translate_file", { ...asked(), file }, { signal });
      const last = new URL(translatedFileUrl).pathname.split("/").at(-1); // a proxy may have another address
      $("made").href = `download_file/${last}`;
      $("made").textContent = decodeURIComponent(last.slice(last.indexOf(".") + 1));
      $("made").hidden = false;
      $("made").click();
      show("");
    } catch (error) {
      if (error.name !== "AbortError") show(problem(error), true);
    }
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
}
