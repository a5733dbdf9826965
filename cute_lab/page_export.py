"""A notebook as one HTML file: nbconvert's page, each cute_lab output a card that a script in the page draws. Nothing else is loaded.

The page's own policy (CSP) lets the one inlined script run and no other, and lets nothing leave the page: what a notebook's outputs
hold is data. Without scripts, and for a record that can't be read, the static form shows. Formulas stay as they are written.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cute_lab import notebook as files
from cute_lab.errors import CuteLabError, OptionError
from cute_lab.quantities import count, number
from cute_lab.record import MIME, from_json, to_json
from cute_lab.viewers import WIDGET

STATIC = Path(__file__).parent / "static"
SCRIPT, STYLE = "page.js", "page.css"
URLS = ("mathjax", "require_js", "jquery", "mermaid_js", "mermaid_layout_elk_js", "jupyter_widgets_base", "widget_renderer")
REMOVED = ("script", "link", "base", "iframe", "object", "embed", "frame", "portal")  # elements that run, load or redirect
LOADS = ("src", "srcset", "poster", "data", "background", "ping", "xlink:href")  # attributes that load, or send
HERE = re.compile(r"\s*(data:|#|$)", re.IGNORECASE)  # what they may hold
LINK = re.compile(r"\s*(https?:|mailto:|#|[^:]*$)", re.IGNORECASE)  # what a person may follow


@dataclass(frozen=True)
class Page:
    path: Path
    size: int  # bytes
    cards: int
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        said = [f"{self.path}: {number(self.size)} bytes, {count(self.cards, 'card')}, loads nothing"]
        return "\n".join([*said, *(f"  left out: {line}" for line in self.left_out)])


def built(name: str, static: Path) -> str:
    path = static / name
    if not path.is_file():
        raise OptionError(
            f"cute_lab/static/{name} is not built",
            detail="An installed cute_lab has it; in a checkout the front end is built first, which needs Node.",
            example="cd labextension && npm ci && npm run build",
        )
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def export_html(path: str | Path, out: str | Path | None = None, static: str | Path = STATIC) -> Page:
    """Writes `out` (NAME.html beside the notebook). `static` is the folder of page.js and page.css."""
    path = Path(path)
    target = Path(out) if out is not None else path.with_suffix(".html")
    script, style = (built(name, Path(static)) for name in (SCRIPT, STYLE))
    made = copy.deepcopy(files.read(path))
    token = f"cute-lab-{secrets.token_hex(12)}"
    cards = _cards(made, token)
    text, left_out = _inert(_converted(made, path))
    for at, card in enumerate(cards):
        text = text.replace(f"<pre>{token}-{at}-</pre>", card)
    page = _complete(text, script, style)
    files.write(page, target)
    drawn = sum('<script type="application/json">' in card for card in cards)
    return Page(target, len(page.encode()), drawn, left_out)


def _cards(made: Any, token: str) -> list[str]:
    """Each cute_lab output becomes a word of plain text; the list says what stands in its place."""
    cards: list[str] = []
    made.metadata.pop("widgets", None)
    for _, cell in files.code_cells(made):
        for output in cell.outputs:
            data = output.get("data", {})
            if MIME in data:
                cards.append(card(data))
                output.data = {"text/plain": f"{token}-{len(cards) - 1}-"}
            elif WIDGET in data and len(data) > 1:
                del data[WIDGET]
    return cards


def card(data: dict[str, Any]) -> str:
    """A cute_lab bundle as HTML: the record as data, its static form below it. No text of it acts."""
    value, said = data[MIME], ""
    try:
        if isinstance(value, dict) and "hash" in value:
            value = to_json(from_json(value))  # of an older schema too: the script in the page reads this one
        elif not (isinstance(value, dict) and type(value.get("schema")) is int):
            raise OptionError("this is neither a cute_lab record nor a part of one")
        said = f'<script type="application/json">{in_script(value)}</script>'
    except CuteLabError as error:
        said = f"<p>{html.escape(error.summary)}</p>"
    return f'<div class="jp-Cute-record">{said}{static_form(data)}</div>'


def in_script(value: Any) -> str:
    """JSON that no HTML parser sees a tag, a comment or an entity in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def static_form(data: dict[str, Any]) -> str:
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    plain = html.escape(str(data.get("text/plain", "")))
    if isinstance(picture := data.get("image/png"), str):
        packed = "".join(picture.split())
        if re.fullmatch(r"[A-Za-z0-9+/=]*", packed):
            return f'<img class="jp-Cute-static" alt="{plain}" src="data:image/png;base64,{packed}">'
    if isinstance(words := data.get("text/markdown"), str):
        made = MarkdownWithMath(renderer=IPythonRenderer(escape=True, allow_harmful_protocols=False)).render(words)
        return f'<div class="jp-Cute-static jp-RenderedHTMLCommon jp-RenderedMarkdown">{_inert(made)[0]}</div>'
    return f'<pre class="jp-Cute-static">{plain}</pre>'


def _converted(made: Any, path: Path) -> str:
    from nbconvert import HTMLExporter

    exporter: Any = HTMLExporter()  # type: ignore[no-untyped-call]
    for name in URLS:
        setattr(exporter, f"{name}_url", "")
    exporter.embed_images = True
    where = {"metadata": {"name": path.stem, "path": str(path.resolve().parent)}}
    text, _ = exporter.from_notebook_node(made, resources=where)
    return str(text)


def _inert(text: str) -> tuple[str, tuple[str, ...]]:
    """The HTML without what runs, loads, sends or redirects, and what that was, in words."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(text, "html.parser")
    left_out: dict[str, None] = {}
    for tag in soup.find_all(REMOVED):
        source = str(tag.get("src") or tag.get("href") or tag.get("data") or "")
        if source and not HERE.match(source):
            left_out[f"<{tag.name}> from {source[:120]}"] = None
        tag.decompose()
    for tag in soup.find_all(True):
        if tag.name == "meta" and "http-equiv" in tag.attrs:
            tag.decompose()
            continue
        for name, value in list(tag.attrs.items()):
            lower, held = name.lower(), " ".join(value) if isinstance(value, list) else str(value or "")
            loads = lower in LOADS or (lower == "href" and tag.name not in ("a", "area"))
            if lower.startswith("on") or lower in ("action", "formaction", "srcdoc"):
                del tag.attrs[name]
            elif (loads and not HERE.match(held)) or (lower == "href" and not loads and not LINK.match(held)):
                left_out[f"<{tag.name}> {lower} {held[:120]}"] = None
                del tag.attrs[name]
        if tag.name == "a" and "href" in tag.attrs:
            tag.attrs["rel"] = "noopener noreferrer"
    return str(soup), tuple(left_out)


def _complete(text: str, script: str, style: str) -> str:
    """With the policy, the style and the script. The policy names the script by its hash."""
    script = script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = (
        "default-src 'none'",
        f"script-src 'sha256-{digest}'",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "font-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    policy = f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'
    style = style.replace("</style", "<\\/style")
    text = text.replace("<head>", f"<head>{policy}", 1)
    text = text.replace("</head>", f"<style>{style}</style></head>", 1)
    before, _, after = text.rpartition("</body>")
    return f"{before}<script>{script}</script></body>{after}"
