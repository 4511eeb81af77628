// The texts of the page beside the glass box, in English and Korean. `{name}` is replaced by a value.

const WORDS = {
  en: {
    loading: "Loading the model…",
    looking: "Translating…",
    failed: "This page can't translate: {problem}",
    card: "About this model",
    offline: "All of it runs in this page: no server, no network, and what you type stays here.",
    plain: "WebAssembly isn't available here, so translating takes longer.",
  },
  ko: {
    loading: "모델을 불러오는 중…",
    looking: "번역 중…",
    failed: "이 페이지에서 번역할 수 없습니다: {problem}",
    card: "이 모델에 대하여",
    offline: "모든 일이 이 페이지 안에서 일어납니다. 서버도 네트워크도 쓰지 않고, 입력한 글은 여기에만 있습니다.",
    plain: "여기에서는 WebAssembly를 쓸 수 없어서 번역이 더 오래 걸립니다.",
  },
};

export function say(language, name, values = {}) {
  return WORDS[language][name].replace(/\{(\w+)\}/gu, (_, value) => values[value]);
}
