// The API's description in Korean.

export const korean = {
  "LibreTranslate-compatible translation API.": "LibreTranslate와 호환되는 번역 API입니다.",
  "Translates a text, or each of a list.": "글 하나를, 또는 목록의 글을 모두 번역합니다.",
  "If the server needs one.": "서버에 키가 필요할 때만 씁니다.",
  "A text, or a list of texts.": "글 하나, 또는 글의 목록.",
  "Language code, or `auto`.": "언어 코드, 또는 `auto`.",
  "Language code.": "언어 코드.",
  "`html` keeps tags in place.": "`html`은 태그를 제자리에 둡니다.",
  "Further translations of each text.": "글마다 더 받을 다른 번역의 수.",
  "Default: the model's own. headway extension.": "기본값은 모델이 정한 값입니다. headway의 확장 기능입니다.",
  "Terms that translations must have: an object of source and target terms, or, as in a form, lines of a source term, a TAB and a target term. headway extension.":
    "번역에 꼭 들어가야 할 용어. 원문 용어와 번역 용어의 객체이거나, 폼에서처럼 원문 용어, 탭, 번역 용어로 된 줄입니다. headway의 확장 기능입니다.",
  "Also how likely each translation is acceptable. Needs a calibrated model. headway extension.":
    "번역마다 받아들일 만할 확률도 알려 줍니다. 보정된 모델이 필요합니다. headway의 확장 기능입니다.",
  "Translates a file, and tells where its translation can be fetched for some minutes.": "파일을 번역하고, 번역한 파일을 몇 분 동안 내려받을 주소를 알려 줍니다.",
  "A text or a document; the end of its name tells its kind.": "글이나 문서. 이름의 끝을 보고 종류를 알아봅니다.",
  "Possible languages of a text, or of a list together, among those of the models, most likely first.":
    "모델의 언어 가운데 글(목록이면 그 전체)이 쓰였을 만한 언어를 확률이 높은 순서로 알려 줍니다.",
  "The computation inside the model while it translates one sentence, as a record.": "모델이 문장 하나를 번역하는 동안의 내부 계산 기록입니다.",
  "One sentence.": "문장 하나.",
  "Inspect this translation; default: the model's own.": "들여다볼 번역. 기본값은 모델이 직접 한 번역입니다.",
  "Default: the model's own.": "기본값은 모델이 정한 값입니다.",
  "Changes of the model or the text.": "모델이나 글에 할 변경.",
  "Lists of edits, each tried separately.": "따로따로 해 볼 변경의 목록들.",
  "Analyses of the translation, by name.": "번역의 분석. 이름으로 적습니다.",
  "Also two sentences of the same words in another order.": "단어는 같고 순서가 다른 두 문장도 넣을지.",
  "Which numbers the record has; `layers`: all but the logits; a list of names: in float32.":
    "기록에 넣을 숫자. `layers`는 로짓을 뺀 모두이고, 이름의 목록이면 float32로 넣습니다.",
  "Links the words of a sentence with those of its translation, by the model's attention.":
    "모델의 어텐션에 따라 문장의 단어와 번역의 단어를 잇습니다.",
  "A sentence, or a list of sentences.": "문장 하나, 또는 문장의 목록.",
  "Its translation, or those of a list.": "그 번역, 또는 목록의 번역들.",
  "The languages of the models, each with its targets and itself; their names as `Accept-Language` says.":
    "모델의 언어들. 언어마다 어떤 언어로 번역되는지(자기 자신도) 함께 알려 줍니다. 이름은 `Accept-Language`의 언어로 씁니다.",
  "Limits and models of the server, for a page that uses it.": "서버를 쓰는 페이지를 위한 제한과 모델 정보.",
  "Alive.": "살아 있습니다.",
  "Whether requests should be sent here: the models are loaded, and the server isn't about to end.":
    "요청을 보내도 되는지 알려 줍니다. 모델을 모두 불러왔고 서버가 끝나는 중이 아닐 때입니다.",
  "Counts for Prometheus. Where a key is needed, send it as `Authorization: Bearer KEY`.":
    "프로메테우스를 위한 수치입니다. 키가 필요하면 `Authorization: Bearer KEY`로 보냅니다.",
};
