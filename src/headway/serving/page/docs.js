// The server's OpenAPI description, for people: each route with its fields and an example.

import { get } from "./server.js";

show(await get("openapi.json"));

function show(description) {
  const routes = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, route]) => section(method.toUpperCase(), path, route)),
  );
  document.getElementById("routes").replaceChildren(prose("p", description.info.description), ...routes);
}

function section(method, path, route) {
  const parts = [element("h2", `${method} ${path}`), prose("p", route.description ?? route.summary)];
  const body = route.requestBody?.content["application/json"];
  if (body) parts.push(table(body.schema), element("pre", command(path, body.example)));
  parts.push(element("p", `Answers: ${Object.keys(route.responses).join(", ")}`));
  const whole = document.createElement("section");
  whole.append(...parts);
  return whole;
}

function table(schema) {
  const whole = document.createElement("table");
  for (const [name, field] of Object.entries(schema.properties)) {
    const row = whole.insertRow();
    row.insertCell().append(element("code", name));
    row.insertCell().textContent = schema.required?.includes(name) ? "needed" : JSON.stringify(field.default) ?? "optional";
    row.append(prose("td", field.description ?? ""));
  }
  return whole;
}

/** A request as it is typed into a shell; JSON has another way to write the apostrophe, which would end the text there. */
function command(path, fields) {
  const data = JSON.stringify(fields).replaceAll("'", "\\u0027");
  return `curl ${new URL(path.slice(1), document.baseURI)} -H 'Content-Type: application/json' \\\n  -d '${data}'`;
}

/** Text in which what stands between `backticks` is code. */
function prose(tag, text) {
  const one = document.createElement(tag);
  one.append(...text.split("`").map((part, place) => (place % 2 ? element("code", part) : part)));
  return one;
}

function element(tag, text) {
  const one = document.createElement(tag);
  one.textContent = text;
  return one;
}
