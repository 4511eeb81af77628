// The history of translations, in this browser alone.

const PLACE = "headway.history";
const MOST = 50;
const SETTLED_AFTER = 1500;

let settling;

export function past() {
  try {
    const entries = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
    return Array.isArray(entries) ? entries : [];
  } catch {
    return []; // another program's, or no storage
  }
}

/** Keeps an entry {source, target, text, translation} when nothing else has come for a moment; then() follows. */
export function remember(entry, then) {
  clearTimeout(settling);
  settling = setTimeout(() => {
    const others = past().filter((one) => one.text !== entry.text || one.target !== entry.target);
    store([entry, ...others].slice(0, MOST));
    then();
  }, SETTLED_AFTER);
}

export function forget() {
  clearTimeout(settling);
  store([]);
}

function store(entries) {
  try {
    localStorage.setItem(PLACE, JSON.stringify(entries));
  } catch {
    // no room, or no storage: the page works without
  }
}
