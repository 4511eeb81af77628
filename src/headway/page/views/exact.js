// A record's numbers are stored in float16 or int8. Beside a live model the reader can have them in float32: those that are
// shown are asked for by name, a few at a time.

import { asShown, sourceAsItWas } from "./asking.js";

const [MOST, PATIENCE] = [32, 100]; // names of a request; milliseconds until what is shown together has been read
const STORED = ["float16", "int8"];

/** Whether there are numbers that the live model has with more digits. */
export function canBeExact({ inspect, record }) {
  return Boolean(inspect) && Object.values(record.arrays ?? {}).some(({ dtype, values }) => STORED.includes(dtype) && !values);
}

/**
 * get: of openNumbers. -> the same; what it is asked for is asked of the live model too, and drawn again when it has come.
 * state: of the box, `asked` a Set of the names that were asked for.
 */
export function exactly(state, get, draw) {
  const { record } = state;
  const wanted = new Set();
  return (name) => {
    if (isRounded(record.arrays, name) && !state.asked.has(name)) {
      if (!wanted.size) setTimeout(() => fetchAll(state, record, wanted, draw), PATIENCE);
      wanted.add(name);
    }
    return get(name);
  };
}

/** Whether an array is stored with fewer digits than the model has. */
function isRounded(arrays, name) {
  const entry = Object.hasOwn(arrays ?? {}, name) ? arrays[name] : null;
  if (!entry || entry.values) return false;
  if (entry.same_as) return isRounded(arrays, entry.same_as);
  return (entry.sum_of ?? entry.masked)?.some((part) => isRounded(arrays, part)) ?? STORED.includes(entry.dtype);
}

async function fetchAll(state, record, wanted, draw) {
  const names = [...wanted].filter((name) => !state.asked.has(name)); // drawn twice meanwhile, it waits twice
  wanted.clear();
  if (!names.length) return;
  names.forEach((name) => state.asked.add(name));
  try {
    for (let at = 0; at < names.length; at += MOST) {
      const answer = await state.inspect(sourceAsItWas(record), { ...asShown(record), arrays: names.slice(at, at + MOST) });
      if (state.record !== record || answer.target.text !== record.target.text) return;
      Object.assign(record.arrays, answer.arrays);
    }
  } catch {
    names.forEach((name) => state.asked.delete(name));
    state.glass.unanswered = true;
    return; // the numbers that are stored stay
  }
  draw();
}
