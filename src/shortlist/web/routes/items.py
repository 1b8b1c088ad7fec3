"""The items of a study: pictures, sound and films for them, items from files, and changes of them."""

import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request, Response, UploadFile
from pydantic import ValidationError

from shortlist.errors import BadProblem
from shortlist.judges.setup import correct_materials
from shortlist.study.create import load_spec
from shortlist.study.maintenance import BEGUN, redefine_study
from shortlist.study.questions import check_items
from shortlist.votes.items import read_item_table
from shortlist.web.auth import JUDGE_COOKIE, OWNER_COOKIE, Kind, Owner, ServiceDep, StudyName, session
from shortlist.web.display import UPLOADS, Content, check_address, load_display, make_display, replace_display
from shortlist.web.media import check_free, claim, fetch, keep, thumbnail
from shortlist.web.schemas import (
    MOST_ITEMS,
    CorrectionIn,
    ItemIn,
    ItemsOut,
    StudyItems,
    StudyItemsIn,
    Upload,
    content_of,
    problems,
)
from shortlist.web.service import Service, study_id

NOTHING_ALLOWED = "default-src 'none'; sandbox"
CACHE = "private, max-age=86400, immutable"
WORDS = {"title": "name", "text": "text", "image": "picture"}
FileId = Annotated[str, Path(pattern="^[0-9a-f]{24}$")]
router = APIRouter(prefix="/api", tags=["items"], responses=problems(401, 403))
uploads = APIRouter(tags=["items"])


@router.post("/uploads", status_code=201)
def upload(service: ServiceDep, token: Owner, file: UploadFile) -> Upload:
    """Upload a picture (PNG, JPEG, GIF, WebP, HEIC), a sound (MP3, M4A, WAV, Ogg, FLAC) or a film (MP4, WebM). Its kind
    is read from its bytes. Of a picture only the pixels are kept, not the place where it was taken."""
    name = keep(service.database, _read(service, file))
    found = fetch(service.database, name)
    assert found is not None
    kind: Literal["image", "audio", "video"] = found.type.partition("/")[0]  # type: ignore[assignment]
    return Upload(kind=kind, address=f"{UPLOADS}{name}")


@router.post("/items/read", responses=problems(501))
def read(service: ServiceDep, token: Owner, file: UploadFile) -> ItemsOut:
    """Read items from a CSV, Excel, JSON or text file. Nothing is stored: look at them, then create a study."""
    rows, notes = read_item_table(file.filename or "the file", _read(service, file))
    if not 0 < len(rows) <= MOST_ITEMS:
        raise BadProblem(f"the file has {len(rows):,} items; give 1 to {MOST_ITEMS:,}")
    items = []
    for place, row in enumerate(rows, 1):
        try:
            items.append(ItemIn(**row))
        except (ValidationError, TypeError) as reason:
            first = (
                reason.errors()[0] if isinstance(reason, ValidationError) else {"loc": ("?",), "msg": "is not clear"}
            )
            raise BadProblem(f"item {place} of the file: {first['loc'][0]} {str(first['msg']).lower()}") from None
    return ItemsOut(items=items, notes=notes)


def _read(service: Service, file: UploadFile) -> bytes:
    limit = service.settings.upload_bytes
    data = file.file.read(limit + 1)
    if len(data) > limit:
        raise HTTPException(413, f"this file is too large; the limit is {limit:,} bytes")
    return data


@uploads.get("/uploads/{id}", include_in_schema=False)
def show(
    request: Request, service: ServiceDep, id: FileId, size: Annotated[Literal["small"] | None, Query()] = None
) -> Response:
    """For the owner, for judges of the study that the file belongs to, and for all once its results are published."""
    found = fetch(service.database, id)
    if found is None or not (_is_owner(request, service) or _may_see(request, service, found.study)):
        raise HTTPException(404, "there is no such file, or you may not see it")
    data = thumbnail(service.database, id) if size and found.type.startswith("image/") else found.data
    headers = {"content-security-policy": NOTHING_ALLOWED, "cache-control": CACHE, "accept-ranges": "bytes"}
    part = _range(request.headers.get("range", ""), len(data))
    if part is None:
        return Response(data, media_type=found.type, headers=headers)
    begin, end = part
    headers["content-range"] = f"bytes {begin}-{end}/{len(data)}"
    return Response(data[begin : end + 1], 206, headers, media_type=found.type)


def _range(header: str, size: int) -> tuple[int, int] | None:
    """The one range of bytes that a player asks for; None for the whole file."""
    asked = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", header)
    if asked is None or asked[0] == "bytes=-":
        return None
    if not asked[1]:
        return max(size - int(asked[2]), 0), size - 1
    begin, end = int(asked[1]), min(int(asked[2] or size - 1), size - 1)
    return (begin, end) if begin <= end else None


def _is_owner(request: Request, service: Service) -> bool:
    return session(request, service, OWNER_COOKIE, Kind.owner_session) is not None


def _may_see(request: Request, service: Service, study: int | None) -> bool:
    if study is None:
        return False
    names = [name for name in request.cookies if name.startswith(JUDGE_COOKIE)]
    found = (session(request, service, name, Kind.judge_session) for name in names)
    is_judge = any(token is not None and token.study_id == study for token in found)
    return is_judge or load_display(service.database, study).published


# --- changes of the items of a study ---


@router.get("/studies/{name}/items", responses=problems(404))
def items(service: ServiceDep, token: Owner, name: StudyName) -> StudyItems:
    """The items of a study with what judges see of them."""
    opened = service.studies.open(name)
    contents = {item: opened.display.contents.get(item, Content()) for item in opened.study.items}
    titles = {item: content.title for item, content in contents.items() if content.title}
    listed = [ItemIn(name=item, **_parts(content)) for item, content in contents.items()]
    return StudyItems(items=listed, titles=titles, can_edit=not opened.study.rows)


def _parts(content: Content) -> dict[str, Any]:
    return {part: getattr(content, part) for part in ("text", "format", "image", "audio", "video", "answers")}


@router.put("/studies/{name}/items", responses=problems(404, 409))
def edit(service: ServiceDep, token: Owner, name: StudyName, given: StudyItemsIn) -> StudyItems:
    """Replace the items of a study before its first question. Links stay; its record begins again."""
    opened = service.studies.open(name)
    if opened.study.rows:
        raise BadProblem(BEGUN)
    spec = load_spec(opened.study.storage.spec(name))
    if spec.allowed is not None:
        raise BadProblem("this study asks only some pairs, so its items are fixed; create a new study")
    names, old = check_items([item.name for item in given.items]), opened.display
    contents = {item.name: content_of(item) for item in given.items}
    cases = [case.text for case in old.cases]
    display = replace(
        make_display(list(names), contents, cases, old.instructions, old.ties, old.blind), published=old.published
    )
    changed = replace(spec, items=tuple(names), k=given.k or spec.k)
    changed.problem()  # raises BadProblem
    check_free(service.database, display.uploaded, opened.id)
    redefine_study(service.database, name, changed.dump())
    number = study_id(service.database, name)
    replace_display(service.database, number, display)
    claim(service.database, display.uploaded, number)
    service.studies.open(name).check_materials()
    service.database.flush()
    return items(service, token, name)


@router.post("/studies/{name}/items/correct", responses=problems(404, 409))
def correct(service: ServiceDep, token: Owner, name: StudyName, given: CorrectionIn) -> StudyItems:
    """Correct the name, the text or the picture of an item. After the first vote on it the verdict has a caveat."""
    opened = service.studies.open(name)
    study, old = opened.study, opened.display
    if given.item not in study.items:
        raise BadProblem(f"{given.item!r} is not an item of this study")
    content = old.contents.get(given.item, Content())
    changes = {"title": given.name, "text": given.text, "image": given.image}
    before = {"title": old.title(given.item), "text": content.text, "image": content.image}
    new: dict[str, Any] = {
        part: value for part, value in changes.items() if value is not None and value != before[part]
    }
    if not new:
        return items(service, token, name)
    taken = {old.title(item) for item in study.items if item != given.item}
    if new.get("title") in taken:
        raise BadProblem(f"another item is called {new['title']!r}; every item needs a name of its own")
    for address in filter(None, [new.get("image")]):
        check_address(address)
    display = replace(old, contents={**old.contents, given.item: replace(content, **new)})
    check_free(service.database, display.uploaded, opened.id)
    claim(service.database, display.uploaded, opened.id)
    replace_display(service.database, opened.id, display)
    words = [WORDS[part] for part in new]
    correct_materials(study, given.item, words, display.texts(study.items), display.cases or None)
    service.database.flush()
    return items(service, token, name)
