"""Files that translators exchange: XLIFF 1.2 and 2, and TMX. Units without a translation get one, all others stay."""

from collections.abc import Sequence

from lxml import etree  # type: ignore[attr-defined]

from headway.documents.archives import local_name, parse_xml, write_xml
from headway.documents.office import MixedParagraph
from headway.documents.segments import Languages, OpenedFile
from headway.errors import UserError
from headway.languages import same_language

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def open_xliff(data: bytes, languages: Languages) -> OpenedFile:
    """The new targets are marked as not yet reviewed."""
    root = parse_xml(data)
    if local_name(root) != "xliff":
        raise UserError("is no XLIFF")
    is_new = root.get("version", "").startswith("2")
    if is_new:
        root.set("trgLang", root.get("trgLang") or languages.target)
    for file in [] if is_new else root.iter("{*}file"):
        file.set("target-language", file.get("target-language") or languages.target)
    targets: list[tuple[MixedParagraph, etree._Element]] = []
    for unit in root.iter("{*}segment" if is_new else "{*}trans-unit"):
        source, target = unit.find("{*}source"), unit.find("{*}target")
        is_filled = target is not None and "".join(map(str, target.itertext())).strip()
        if source is None or is_filled or _is_kept(unit):
            continue
        if target is None:
            target = etree.Element(f"{{{etree.QName(source).namespace}}}target" if source.tag[0] == "{" else "target")
            before = unit.find("{*}seg-source")
            (source if before is None else before).addnext(target)
            target.tail, source.tail = source.tail, source.tail
        if is_new:
            unit.set("state", "translated")
        else:
            target.set("state", "needs-review-translation")
        targets.append((MixedParagraph(source), target))
    return _opened(root, targets)


def open_tmx(data: bytes, languages: Languages) -> OpenedFile:
    """Units without a variant in the target language get one."""
    root = parse_xml(data)
    if local_name(root) != "tmx":
        raise UserError("is no TMX")
    targets: list[tuple[MixedParagraph, etree._Element]] = []
    for unit in root.iter("{*}tu"):
        variants = {_code(one): one for one in unit.findall("{*}tuv")}
        source = same_language(languages.source, variants)
        if source is None or same_language(languages.target, variants):
            continue
        segment = variants[source].find("{*}seg")
        if segment is None:
            continue
        variant = etree.SubElement(unit, "tuv", {_LANGUAGE: languages.target})
        targets.append((MixedParagraph(segment), etree.SubElement(variant, "seg")))
    return _opened(root, targets)


def _is_kept(unit: etree._Element) -> bool:
    """Whether the nearest element around that says whether it is translated, says no."""
    return next((one.get("translate") for one in [unit, *unit.iterancestors()] if one.get("translate")), "") == "no"


def _code(variant: etree._Element) -> str:
    return variant.get(_LANGUAGE) or variant.get("lang") or ""


def _opened(root: etree._Element, targets: Sequence[tuple[MixedParagraph, etree._Element]]) -> OpenedFile:
    def written(translations: Sequence[str]) -> bytes:
        for (source, target), translation in zip(targets, translations, strict=True):
            source.write_into(target, source.text.restored(translation))
        return write_xml(root)

    return OpenedFile([source.text.segment for source, _ in targets], written)
