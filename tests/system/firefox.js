// Firefox by WebDriver BiDi: opens pages and evaluates expressions in them, a line of JSON for each line that it gets.
// {address} opens a page, {expression} gives its value there, {selector} waits for an element,
// {ending} gives what the page said and asked for, and closes it. The argument is Firefox's path.

import { createInterface } from "node:readline";

import puppeteer from "puppeteer-core";

// As a person has it: puppeteer lets pages from a disk read files.
const extraPrefsFirefox = { "security.fileuri.strict_origin_policy": true };
const browser = await puppeteer.launch({ browser: "firefox", executablePath: process.argv[2], extraPrefsFirefox });
let [page, said, asked] = [];

async function open(address) {
  page = await browser.newPage();
  [said, asked] = [[], []];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(address);
}

async function answer({ address, expression, selector }) {
  if (address) return open(address);
  if (expression) return page.evaluate(expression);
  if (selector) return page.waitForSelector(selector).then(() => null);
  await page.close();
  return { said, asked };
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify((await answer(JSON.parse(line))) ?? null));
await browser.close();
