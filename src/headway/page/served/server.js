// Asks the server. Every function may throw a Refusal, or an AbortError where its signal is aborted.

const [TRIES, PATIENCE] = [4, 60]; // seconds
let inspected = Promise.resolve(); // settles once the requests to inspect so far are answered

class Refusal extends Error {
  /** status: as HTTP has it, 0 where the server can't be reached. */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function get(path) {
  return read(await reach(path));
}

/** Posts fields as JSON, or with a file as a form. id: of the request. A server that is busy is asked again after the time that it names, if that is short; busy() is told. */
export async function post(path, fields, { signal, id, busy = () => {}, tries: most = TRIES } = {}) {
  const headers = { ...(fields.file ? {} : { "Content-Type": "application/json" }), ...(id && { "X-Request-ID": id }) };
  const request = { method: "POST", headers, body: fields.file ? form(fields) : JSON.stringify(fields), signal };
  for (let tries = 1; ; tries++) {
    const answer = await reach(path, request);
    const wait = Number(answer.headers.get("Retry-After")) || 2;
    if (tries === most || wait > PATIENCE || ![429, 503].includes(answer.status)) return read(answer);
    busy();
    await pause(1000 * wait, signal);
  }
}

/** Posts a request to inspect once those before it are answered: the server runs one at a time, and few of a client may wait. */
export function inspectInTurn(fields, options) {
  const answer = inspected.then(() => {
    options.signal.throwIfAborted();
    return post("inspect", fields, options);
  });
  inspected = answer.catch(() => {});
  return answer;
}

function form(fields) {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) made.append(name, value);
  return made;
}

async function reach(path, request) {
  try {
    return await fetch(path, request);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refusal(0, problem.message);
  }
}

async function read(answer) {
  const document = await answer.json().catch((problem) => {
    if (problem.name === "AbortError") throw problem;
    return { error: answer.statusText };
  });
  if (!answer.ok) throw new Refusal(answer.status, document.error);
  return document;
}

export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("the text has changed", "AbortError"));
    });
  });
}
