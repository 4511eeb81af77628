// The texts of the page in English and Korean.

const WORDS = {
  en: {
    allSure: "The model is sure of every word: {share} or more.",
    already: "The text is in this language already: {language}",
    api: "API",
    auto: "Detect language",
    busy: "The server is busy; trying again.",
    busyStill: "The server is busy; try again later.",
    clear: "Clear",
    copied: "Copied",
    copy: "Copy",
    defect: "Something is wrong with the server; its log has more.",
    detached: "This may have little to do with the text: the text makes the words hardly more probable (on average less than 2 nats a token).",
    detected: "Detected: {language}",
    exampleOf: "Examples of",
    examples: "Examples:",
    file: "Translate a file",
    fileCount: "{done} of {sentences} sentences",
    fileHint: "Or drop it on this page: {kinds}",
    fileWaiting: "Translating {name}…",
    forget: "Forget all",
    from: "From",
    hint: "Type or paste text",
    history: "History",
    historyHint: "Kept in this browser alone.",
    inside: "See inside",
    insideEmpty: "Type a sentence to see what the model does with it.",
    insideFailed: "The view can't be shown: {problem}",
    insideMissing: "This server has no view of the inside.",
    insideNeedsTorch: "To look inside, the server needs torch, which is not installed there: pip install 'headway[torch]'",
    insideWaiting: "Looking inside…",
    into: "Into",
    key: "API key",
    keyHint: "This server needs a key. It stays in this tab.",
    keyMissing: "Type the API key above.",
    keyWrong: "The server doesn't know this key.",
    leastSure: "Least sure of: {words}",
    limit: "{count} of {limit} characters",
    modelLine: "{from} to {into}, {count} parameters",
    models: "This server knows:",
    needed: "needed",
    numbersInvented: "Numbers that aren't in the text: {numbers}",
    numbersMissing: "Numbers missing from the translation: {numbers}",
    optional: "optional",
    others: "Other translations",
    refused: "The server refuses this: {problem}",
    sentence: "Sentence",
    statuses: "Status:",
    swap: "Swap languages",
    text: "Text",
    tooLong: "The text is longer than {limit} characters.",
    translation: "Translation",
    undetected: "What language this is can't be told, or it isn't translated here: choose the language above.",
    unreachable: "The server can't be reached.",
    waiting: "Translating…",
  },
  ko: {
    allSure: "모든 단어에 자신이 있습니다. 확률이 모두 {share} 이상입니다.",
    already: "이미 대상 언어로 쓴 글입니다: {language}",
    api: "API",
    auto: "언어 감지",
    busy: "서버가 바쁩니다. 다시 시도합니다.",
    busyStill: "서버가 바쁩니다. 잠시 뒤에 다시 시도하세요.",
    clear: "지우기",
    copied: "복사했습니다",
    copy: "복사",
    defect: "서버에 문제가 있습니다. 자세한 내용은 서버의 기록에 있습니다.",
    detached: "원문과 관계없는 번역일 수 있습니다. 원문이 있어도 토큰의 확률이 별로 높아지지 않습니다(로그 확률 평균 2nat 미만).",
    detected: "감지한 언어: {language}",
    exampleOf: "예시의 언어",
    examples: "예문:",
    file: "파일 번역",
    fileCount: "{sentences}문장 중 {done}문장",
    fileHint: "파일을 이 페이지에 끌어다 놓아도 됩니다: {kinds}",
    fileWaiting: "{name} 번역 중…",
    forget: "모두 지우기",
    from: "원본 언어",
    hint: "글을 입력하거나 붙여 넣으세요",
    history: "기록",
    historyHint: "이 브라우저에만 저장됩니다.",
    inside: "속을 들여다보기",
    insideEmpty: "문장을 입력하면 모델이 하는 일을 볼 수 있습니다.",
    insideFailed: "화면을 보여 줄 수 없습니다: {problem}",
    insideMissing: "이 서버에는 속을 보여 주는 화면이 없습니다.",
    insideNeedsTorch: "속을 들여다보려면 서버에 torch를 설치해야 합니다: pip install 'headway[torch]'",
    insideWaiting: "들여다보는 중…",
    into: "대상 언어",
    key: "API 키",
    keyHint: "이 서버에는 키가 필요합니다. 키는 이 탭에만 남습니다.",
    keyMissing: "위에 API 키를 입력하세요.",
    keyWrong: "서버가 모르는 키입니다.",
    leastSure: "가장 자신 없는 단어: {words}",
    limit: "{limit}자 중 {count}자",
    modelLine: "{from}에서 {into}로, 파라미터 {count}개",
    models: "이 서버의 모델:",
    needed: "필수",
    numbersInvented: "원문에 없는 숫자: {numbers}",
    numbersMissing: "번역문에서 빠진 숫자: {numbers}",
    optional: "선택",
    others: "다른 번역",
    refused: "서버가 받아들이지 않았습니다: {problem}",
    sentence: "문장",
    statuses: "상태 코드:",
    swap: "언어 바꾸기",
    text: "원문",
    tooLong: "글이 {limit}자보다 깁니다.",
    translation: "번역",
    undetected: "어느 언어인지 알 수 없거나 여기서 번역하지 않는 언어입니다. 위에서 언어를 고르세요.",
    unreachable: "서버에 연결할 수 없습니다.",
    waiting: "번역 중…",
  },
};

const PLACE = "headway.language";
const OTHER = { en: ["ko", "한국어"], ko: ["en", "English"] };

/** The language of the page: what was chosen before, else the browser's. */
export function pageLanguage() {
  const chosen = kept();
  return chosen in WORDS ? chosen : navigator.language.startsWith("ko") ? "ko" : "en";
}

export function choosePageLanguage(language) {
  try {
    localStorage.setItem(PLACE, language);
  } catch {
    // no storage: it is chosen for this once
  }
}

function kept() {
  try {
    return localStorage.getItem(PLACE);
  } catch {
    return null;
  }
}

/** The code and the name of the language that the page can change to. */
export function otherLanguage(language) {
  return OTHER[language];
}

/** A phrase, with {names} filled in. */
export function say(language, name, values = {}) {
  return WORDS[language][name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** The name of a language. XX, as in mBART's en_XX, is no region. */
export function languageName(language, code, fallback = code) {
  try {
    const known = code.replaceAll("_", "-").replace(/-XX$/, "");
    return new Intl.DisplayNames([language], { type: "language", fallback: "none" }).of(known) ?? fallback;
  } catch {
    return fallback; // the code is none of a language
  }
}

/** Puts the phrases into every element of the page that names one, and the other language on its button. */
export function fillWords(language) {
  document.documentElement.lang = language;
  const [code, name] = otherLanguage(language);
  Object.assign(document.getElementById("page-language"), { textContent: name, lang: code });
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = say(language, element.dataset.word);
  for (const element of document.querySelectorAll("[data-hint]")) element.placeholder = say(language, element.dataset.hint);
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", say(language, element.dataset.label));
    element.title = say(language, element.dataset.label);
  }
}
