// The server's OpenAPI description, for people: each route with its fields, an example and the server's own answer to it.

import { korean } from "./docs_ko.js";
import { get, post } from "./server.js";
import { choosePageLanguage, fillWords, languageName, otherLanguage, pageLanguage, say } from "./words.js";

const LONGEST = 1500; // characters of an answer
const $ = (id) => document.getElementById(id);

let language = pageLanguage();
const [description, { models }] = await Promise.all([get("openapi.json"), get("frontend/settings")]);
$("page-language").addEventListener("click", () => {
  [language] = otherLanguage(language);
  choosePageLanguage(language);
  show();
});
$("direction").addEventListener("change", show);
show();

function show() {
  fillWords(language);
  const chosen = Math.max(0, $("direction").selectedIndex);
  const named = ({ source, target }) => [source, target].map((one) => languageName(language, one)).join(" → ");
  $("direction").replaceChildren(...models.map((model, at) => new Option(named(model), at, false, at === chosen)));
  $("directions").hidden = models.length < 2;
  $("described").replaceChildren(...prose(description.info.description));
  const routes = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, route]) => section(method.toUpperCase(), path, route, models[chosen])),
  );
  $("routes").replaceChildren(...routes);
}

function section(method, path, route, model) {
  const whole = document.createElement("section");
  whole.append(element("h2", `${method} ${path}`), element("p", ...prose(route.description ?? route.summary)));
  const { "application/json": body, "multipart/form-data": parts } = route.requestBody?.content ?? {};
  const form = body ? null : parts;
  const fields = body ? { ...body.example, ...ofModel(body.example, model) } : null;
  if (parts) whole.append(table(parts.schema));
  whole.append(element("pre", command(path, fields, form ? { file: "@film.srt", ...form.example } : null)));
  if (body || !route.responses["403"]) whole.append(answered(path, fields));
  whole.append(element("p", `${say(language, "statuses")} ${Object.keys(route.responses).join(", ")}`));
  return whole;
}

/** The fields of an example that depend on the languages. */
function ofModel(example, { source, target, examples: [first] }) {
  const values = { q: first.source, source, target, translation: first.target };
  return Object.fromEntries(Object.entries(values).filter(([name]) => name in example));
}

/** The server's present answer. */
function answered(path, fields) {
  const place = element("pre", say(language, "waiting"));
  place.className = "answered";
  const asked = fields ? post(path.slice(1), fields, { tries: 1 }) : get(path.slice(1));
  asked
    .catch((problem) => ({ error: problem.message }))
    .then((answer) => {
      const text = JSON.stringify(answer, null, 2).replaceAll(/\[\s+(\d+),\s+(\d+)\s+\]/gu, "[$1, $2]"); // a link in a line
      place.textContent = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
    });
  return place;
}

function table(schema) {
  const whole = document.createElement("table");
  for (const [name, field] of Object.entries(schema.properties)) {
    const row = whole.insertRow();
    row.insertCell().append(element("code", name));
    const needed = schema.required?.includes(name);
    row.insertCell().textContent = needed ? say(language, "needed") : JSON.stringify(field.default) ?? say(language, "optional");
    row.append(element("td", ...prose(field.description ?? "")));
  }
  return whole;
}

/** A request as it is typed into a shell; JSON has another way to write the apostrophe, which would end the text there. */
function command(path, fields, form) {
  const address = new URL(path.slice(1), document.baseURI);
  if (form) return [`curl ${address}`, ...Object.entries(form).map((field) => `-F ${field.join("=")}`)].join(" ");
  if (!fields) return `curl ${address}`;
  const data = JSON.stringify(fields).replaceAll("'", "\\u0027");
  return `curl ${address} -H 'Content-Type: application/json' \\\n  -d '${data}'`;
}

/** Text of the description in the language of the page; what stands between `backticks` is code. */
function prose(text) {
  const told = language === "ko" ? korean[text] ?? text : text;
  return told.split("`").map((part, place) => (place % 2 ? element("code", part) : part));
}

function element(tag, ...children) {
  const one = document.createElement(tag);
  one.append(...children);
  return one;
}
