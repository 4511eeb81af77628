// Shows each token's share from the source, and whether the translation depends on the source.

import { make } from "./elements.js";
import { decimal, percent } from "./numbers.js";
import { brief, pieceTexts } from "./tokens.js";

export function sharePart({ record, say }, analyses) {
  const shares = analyses.found("contributions").fields.source_share;
  const erasure = analyses.found("erasure")?.fields;
  const rows = pieceTexts(record.target.tokens).map((name, step) => {
    const row = make("li", {}, make("bdi", { class: "piece" }, brief(name, 16)), make("span", { class: "track" }, make("span", { class: "bar" })), make("span", { class: "number" }, percent(shares[step])));
    row.style.setProperty("--share", shares[step].toFixed(4));
    return row;
  });
  return [
    make("ol", { class: "bars" }, rows),
    erasure ? make("p", {}, say("gain", { nats: decimal(erasure.mean_gain) })) : null,
    erasure ? make("p", { class: erasure.detached ? "warned" : "quiet" }, say(erasure.detached ? "detached" : "attached")) : null,
  ].filter((part) => part);
}
