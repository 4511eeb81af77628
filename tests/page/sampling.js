// Answers with the probabilities that the page shows, and the tokens that it draws.

import { createInterface } from "node:readline";
import { drawn, entropy, ranked, sampled } from "./page/views/sampling.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { logits, settings, chances } = JSON.parse(line);
  const tokens = ranked(logits);
  const places = sampled(tokens, settings);
  const probabilities = new Array(logits.length);
  tokens.ids.forEach((id, place) => (probabilities[id] = places[place]));
  console.log(JSON.stringify({ probabilities, drawn: chances.map((chance) => tokens.ids[drawn(places, chance)]), entropy: entropy(places) }));
}
