"""Archives of XML, such as office documents and books: some of their files are replaced, all others stay."""

import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO

from lxml import etree  # type: ignore[attr-defined]

from headway.documents.kinds import MOST_BYTES
from headway.documents.segments import OpenedFile, Put, Segment
from headway.errors import UserError

_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
"""A part of what Office makes of a document with a password, which is no archive."""
_MANIFEST = "META-INF/manifest.xml"
"""In OpenDocument it says how the other files are encrypted."""


def read_archive(data: bytes, is_wanted: Callable[[str], object]) -> dict[str, bytes]:
    """The wanted files by their names; all are read once. Raises UserError for an archive that is encrypted or would
    become too large, BadZipFile for one with damage."""
    encrypted = UserError("is encrypted; save it without a password")
    if data[:2] != b"PK" and _ENCRYPTED_PACKAGE in data:
        raise encrypted
    with zipfile.ZipFile(BytesIO(data)) as archive:
        entries = archive.infolist()
        if any(one.flag_bits & 1 for one in entries):
            raise encrypted
        if (size := sum(one.file_size for one in entries)) > MOST_BYTES:
            raise UserError(f"has {size:,} bytes when unpacked, the limit is {MOST_BYTES:,}")
        read = ((one.filename, archive.read(one)) for one in entries)
        found = {name: content for name, content in read if is_wanted(name) or name == _MANIFEST}
    if b"encryption-data" in found.pop(_MANIFEST, b""):
        raise encrypted
    return found


def rewrite_archive(data: bytes, replaced: Mapping[str, bytes]) -> bytes:
    """The archive with other contents of these files, in the same order, each packed as it was."""
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as archive, zipfile.ZipFile(made, "w") as written:
        for one in archive.infolist():
            content = replaced[one.filename] if one.filename in replaced else archive.read(one)
            written.writestr(one, content, compress_type=one.compress_type)
    return made.getvalue()


def open_archive(
    data: bytes, parts: str, texts_of: Callable[[Sequence[etree._Element]], Iterable[tuple[Segment, Put]]]
) -> OpenedFile:
    """The texts of an archive of XML. parts: a regular expression for the names of the files with text."""
    roots = {name: parse_xml(part) for name, part in read_archive(data, re.compile(parts).fullmatch).items()}
    if not roots:
        raise UserError("holds no text of such a document")
    texts = list(texts_of(list(roots.values())))
    return OpenedFile.of(texts, lambda: rewrite_archive(data, {name: write_xml(root) for name, root in roots.items()}))


def parse_xml(data: bytes) -> etree._Element:
    """The root of a file of XML. Raises UserError for one that declares entities."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, strip_cdata=False)
    root = etree.fromstring(data, parser)
    types = root.getroottree().docinfo.internalDTD
    if types is not None and any(types.iterentities()):
        raise UserError("declares entities, which are not read")
    return root


def write_xml(root: etree._Element) -> bytes:
    """The whole file, with what stands before and after the root."""
    tree = root.getroottree()
    standalone = b' standalone="yes"' if tree.docinfo.standalone else b""
    content = etree.tostring(tree, xml_declaration=False, encoding="UTF-8")
    return b'<?xml version="1.0" encoding="UTF-8"%b?>\n%b\n' % (standalone, content)


def local_name(element: etree._Element) -> str:
    """The name without its namespace; empty for comments and processing instructions."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""
