// The room of the glass box: shows what happens inside the model while it translates.

let latest = 0;
let glass = null;
let shown = null; // {of: the text and its languages, language: of the page}

/**
 * Fills `element` with the view of one sentence's translation; `notice` is told what there is to say meanwhile. In another
 * language of the page it keeps what it shows, also another sentence that was typed there.
 * inspect(text, options): asks the server for a record; analysesFor(record): the names of those that it can compute;
 * languages: {from, to}, which a link to the view holds. Where the server has no view, that is said.
 */
export async function showInside(element, { text, inspect, analysesFor, language, languages, notice }) {
  const mine = ++latest;
  const of = JSON.stringify([text, languages]);
  const kept = shown?.of === of && shown.language !== language ? glass.shownIn(element) : null;
  shown = null;
  if (!kept) element.replaceChildren();
  if (!text) {
    notice("insideEmpty");
    return;
  }
  notice("insideWaiting");
  try {
    glass ??= await import("../glass/glass.js");
  } catch {
    notice("insideMissing");
    return;
  }
  try {
    const named = glass.sentenceOf(location.hash.slice(1));
    const edits = named?.text === text ? named.edits : [];
    const record = kept ?? (await inspect(text, edits.length ? { edits } : {}));
    if (mine !== latest) return; // the text has changed
    shown = { of, language };
    notice(null);
    glass.mount(element, { record, inspect, analyses: analysesFor(record), language, address: languages });
  } catch (problem) {
    if (mine === latest) notice("insideFailed", { problem: problem.message });
  }
}

/** Whether the address names another sentence, or other edits, than `element` shows. */
export function namesAnother(element) {
  return !glass || glass.sentenceOf(location.hash.slice(1), glass.shownIn(element)) !== null;
}
