// Entry of the page of one file, which holds the worker's script and the model.

import { openInWorker } from "../engine/model.js";
import { decodeBytes } from "./numbers.js";
import { showPage } from "./page.js";

function openFromPage() {
  const script = new Blob([document.getElementById("worker").textContent], { type: "text/javascript" });
  const address = URL.createObjectURL(script);
  return openInWorker(new Worker(address), decodeBytes(document.getElementById("model").textContent)).finally(() => URL.revokeObjectURL(address));
}

showPage(openFromPage);
