// Entry of the page of one file, which holds the worker's script and the model.

import { openInWorker } from "../engine/model.js";
import { showPage } from "./page.js";

function openFromPage() {
  const script = new Blob([document.getElementById("worker").textContent], { type: "text/javascript" });
  const address = URL.createObjectURL(script);
  return openInWorker(new Worker(address), bytesOf(document.getElementById("model").textContent)).finally(() => URL.revokeObjectURL(address));
}

/** Decodes base64. */
function bytesOf(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

showPage(openFromPage);
