// The room of the glass box: shows what happens inside the model while it translates.

let latest = 0;

/**
 * Fills `element` with the view of one sentence's translation; `notice` is told what there is to say meanwhile.
 * inspect(text, options): asks the server for a record; analysesFor(record): the names of those that it can compute;
 * languages: {from, to}, which a link to the view holds. Where the server has no view, that is said.
 */
export async function showInside(element, { text, inspect, analysesFor, language, languages, notice }) {
  const mine = ++latest;
  element.replaceChildren();
  if (!text) {
    notice("insideEmpty");
    return;
  }
  notice("insideWaiting");
  let glass;
  try {
    glass = await import("../glass/glass.js");
  } catch {
    notice("insideMissing");
    return;
  }
  try {
    const named = glass.sentenceOf(location.hash.slice(1));
    const edits = named?.text === text ? named.edits : [];
    const record = await inspect(text, edits.length ? { edits } : {});
    if (mine !== latest) return; // the text has changed
    notice(null);
    glass.mount(element, { record, inspect, analyses: analysesFor(record), language, address: languages });
  } catch (problem) {
    if (mine === latest) notice("insideFailed", { problem: problem.message });
  }
}
