// The page: the glass box, with a model in a worker in the place of a server.

import { sentenceOf } from "./address.js";
import { mountBox, shownIn } from "./box.js";
import { cardElements } from "./card.js";
import { make } from "./elements.js";
import { languages, speaker } from "./words.js";

/** Fills the page. open: gives a promise of a Model (model.js). `window.headway.translate` and `.inspect` are the model's. */
export async function showPage(open) {
  const model = open();
  window.headway = {
    translate: async (text, options) => (await model).translate(text, options),
    inspect: async (text, options) => (await model).inspect(text, options),
  };
  const page = new Page();
  page.draw();
  try {
    page.model = await model;
    performance.mark("headway-ready");
    page.draw();
    const example = { text: page.model.about.examples[0] };
    await page.look(sentenceOf(location.hash.slice(1)) ?? example);
    if (!page.record) await page.look(example); // the model refuses what the address names
  } catch (problem) {
    page.tell("pageFailed", { problem: problem.message });
  }
}

/** "en", "ko" or null: what the address holds of the box's view. */
function languageOfAddress() {
  const language = new URLSearchParams(location.hash.slice(1)).get("lang");
  return languages.includes(language) ? language : null;
}

class Page {
  constructor() {
    this.language = languageOfAddress() ?? (navigator.language.startsWith("ko") ? "ko" : "en");
    this.model = null;
    this.latest = 0;
    this.told = ["pageLoading", {}];
    this.head = make("header", { class: "masthead" }, make("h1", {}, "headway"));
    this.notice = make("p", { class: "notice", role: "status" });
    this.box = make("div", {});
    this.foot = make("footer", {});
    document.querySelector("main").replaceChildren(this.head, this.notice, this.box, this.foot);
    window.addEventListener("popstate", () => {
      if ((languageOfAddress() ?? this.language) !== this.language) this.turn();
      const named = this.record && sentenceOf(location.hash.slice(1), this.record);
      if (named) this.look(named);
    });
  }

  /** The record that the box shows, or null. */
  get record() {
    return shownIn(this.box);
  }

  /** Draws the page around the box, and the box if there is a record. */
  draw(record = this.record) {
    const { language, model } = this;
    document.documentElement.lang = language;
    this.head.hidden = Boolean(record); // the box has a head of its own
    this.tell(...this.told);
    if (model) this.foot.replaceChildren(...this.around(model));
    if (!record) return;
    const { analyses, examples } = model.about;
    const measured = analyses.filter((name) => name === "head_importance"); // when the page was made
    mountBox(this.box, { record, inspect: this.inspect, analyses, measured, language, examples, turn: () => this.turn(), address: true });
  }

  around({ about: { card, kernel } }) {
    const word = speaker(this.language);
    return [
      make("p", { class: "quiet" }, word("pageOffline"), kernel ? null : ` ${word("pagePlain")}`),
      card ? make("details", {}, make("summary", {}, word("pageCard")), make("div", { class: "card", dir: "auto" }, cardElements(card))) : null,
    ].filter((part) => part);
  }

  tell(name, values = {}) {
    this.told = [name, values];
    this.notice.hidden = name === null;
    this.notice.textContent = name === null ? "" : speaker(this.language)(name, values);
  }

  /** To the other language, which the address holds too, where it holds one. */
  turn() {
    this.language = this.language === "en" ? "ko" : "en";
    if (languageOfAddress()) {
      const parts = new URLSearchParams(location.hash.slice(1));
      parts.set("lang", this.language);
      history.replaceState(null, "", `#${parts}`);
    }
    this.draw();
  }

  /** Translates the text and shows the inside. edits: made before; tag: of the target language. */
  async look({ text, tag = "", edits = [] }) {
    const mine = ++this.latest;
    this.tell("pageLooking");
    try {
      const record = await this.inspect(tag ? `${tag} ${text}` : text, edits.length ? { edits } : {});
      if (mine !== this.latest) return;
      this.told = [null, {}];
      this.draw(record);
    } catch (problem) {
      if (mine === this.latest) this.tell("pageFailed", { problem: problem.message });
    }
  }

  /** Inspects for the box. A text without a tag goes into the same language. */
  inspect = (text, options) => {
    const { tags } = this.model.about;
    const last = this.record?.source.tokens[0].piece;
    const tag = tags.includes(last) && !tags.some((one) => text.trimStart().startsWith(one)) ? `${last} ` : "";
    return this.model.inspect(tag + text, options);
  };
}
