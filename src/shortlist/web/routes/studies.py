"""The owner's side of a study: create, view, open, pause, close, change settings, undo and void votes; and its items:
pictures, sound and films for them, items from files, and changes of them.
"""

import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request, Response, UploadFile
from pydantic import ValidationError

from shortlist.errors import BadCases, BadProblem, NotJudgedHere, UnknownStudy
from shortlist.judges.setup import correct_materials
from shortlist.study.create import check_take_over, create_study, load_spec, take_over_votes
from shortlist.study.maintenance import BEGUN, redefine_study
from shortlist.study.questions import check_items
from shortlist.votes.items import read_item_table
from shortlist.web.auth import (
    JUDGE_COOKIE,
    NAME,
    OWNER_COOKIE,
    Kind,
    Owner,
    QuestionId,
    ServiceDep,
    StudyName,
    Viewer,
    revoke,
    session,
    split_id,
)
from shortlist.web.dashboard import dashboard, plain_sentence, state_of
from shortlist.web.display import (
    UPLOADS,
    Content,
    check_address,
    check_free,
    claim,
    copy_files,
    fetch,
    keep,
    load_display,
    make_display,
    replace_display,
    save_display,
    set_closed,
    thumbnail,
    tracks_of,
)
from shortlist.web.judges import copy_judges, find_judge
from shortlist.web.middleware import plain_words
from shortlist.web.routes.judges import check_new, new_links
from shortlist.web.routes.questions import find_question, undo_vote
from shortlist.web.schemas import (
    MOST_ITEMS,
    CorrectionIn,
    Dashboard,
    EventOut,
    ItemIn,
    ItemsOut,
    JudgeIn,
    Links,
    Person,
    SettingsIn,
    StateIn,
    Studies,
    StudyIn,
    StudyItems,
    StudyItemsIn,
    StudyLine,
    Track,
    TrackJudges,
    Upload,
    WithdrawIn,
    content_of,
    problems,
)
from shortlist.web.service import OpenStudy, Service, newest_studies, study_id

MIN_JUDGES = 2  # people judge by links, and one of them should not decide alone
MOST_LETTERS = 100  # of a study's name
MOST_LISTED = 100  # each study in the list is opened
NOTHING_ALLOWED = "default-src 'none'; sandbox"
CACHE = "private, max-age=86400, immutable"
WORDS = {"title": "name", "text": "text", "image": "picture"}
FileId = Annotated[str, Path(pattern="^[0-9a-f]{24}$")]
router = APIRouter(prefix="/api", tags=["studies"], responses=problems(401))
items_router = APIRouter(prefix="/api", tags=["items"], responses=problems(401, 403))
uploads = APIRouter(tags=["items"])


@router.get("/studies", responses=problems(404))
def list_studies(
    service: ServiceDep, token: Owner,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    before: Annotated[str | None, Query(pattern=NAME, description="`next` of the page before.")] = None,
) -> Studies:  # fmt: skip
    """List studies, newest first, page by page."""
    lines = []
    names = newest_studies(service.database, limit + 1, before)
    for name in names[:limit]:
        try:
            opened = service.studies.open(name)
        except NotJudgedHere:
            continue
        lines.append(StudyLine(**_line(service, opened)))
    return Studies(studies=lines, next=names[limit - 1] if len(names) > limit else None)


@router.post("/studies", status_code=201, responses=problems(403, 404, 409))
def create(service: ServiceDep, token: Owner, given: StudyIn) -> Dashboard:
    """Create a study. It is open for judges at once."""
    if any(item.track for item in given.items):
        raise BadProblem("these items have tracks; send them to /api/events, which creates a study for each track")
    return _dashboard(service, _create(service, given))


def _line(service: Service, opened: OpenStudy) -> dict[str, Any]:
    sentence = plain_sentence(opened, opened.study.refresh())
    return {"name": opened.study.name, "state": state_of(service.database, opened), "sentence": sentence,
            "event": opened.display.event}  # fmt: skip


def _create(service: Service, given: StudyIn, event: str | None = None, track: str | None = None) -> OpenStudy:
    names = [item.name for item in given.items]
    contents = {item.name: content_of(item) for item in given.items}
    display = make_display(names, contents, list(given.cases), given.instructions, given.ties, given.blind)
    display = replace(display, event=event, track=track)
    older = None if given.from_study is None else service.studies.open(given.from_study)
    if older is not None:
        display = display.with_files(copy_files(service.database, display.uploaded, older.id))
    check_free(service.database, display.uploaded)
    if given.takes_over:
        if older is None:
            raise BadProblem("takes_over needs from_study, the study whose votes are taken over")
        check_take_over(older.study, names, given.judges_claim, given.cases_claim)
    if given.cases_claim == "like these" and not display.cases:
        raise BadCases("a claim about cases like these needs cases; give some")
    create_study(
        names, given.k, given.delta, storage=service.database, name=given.name, tolerance=given.tolerance,
        max_votes=given.max_votes, cases_claim=given.cases_claim, judges_claim=given.judges_claim,
        ballot_size=given.ballot_size, min_judges=given.min_judges or (1 if given.tolerance else MIN_JUDGES),
        seed=given.seed,
    )  # fmt: skip
    number = study_id(service.database, given.name)
    save_display(service.database, number, display)
    claim(service.database, display.uploaded, number)
    opened = service.studies.open(given.name)
    opened.check_materials()
    if older is not None and given.takes_over:
        copy_judges(service.database, older.id, opened.id)  # so that a person is one judge in both
        take_over_votes(older.study, opened.study)
    return opened


# --- events with tracks: a study for each ---


@router.post("/events", status_code=201, responses=problems(403, 404, 409))
def create_event(service: ServiceDep, token: Owner, given: StudyIn) -> EventOut:
    """Create an event with tracks: one study for each group of items with the same `track`, all with these settings.
    The studies are called by the event and the track."""
    tracks: dict[str, list[ItemIn]] = {}
    for item in given.items:
        if item.track is None:
            raise BadProblem(f"{item.name!r} has no track; give every item one, or none")
        tracks.setdefault(item.track, []).append(item.model_copy(update={"track": None}))
    if given.from_study is not None:
        raise BadProblem("an event with tracks cannot start from an older study; create its studies one by one")
    parts = {track: _part(given, track, items) for track, items in tracks.items()}
    for name in (given.name, *(part.name for part in parts.values())):
        if tracks_of(service.database, name) or _is_taken(service, name):
            raise HTTPException(409, f"a study or an event named {name!r} already exists; choose another name")
    for track, part in parts.items():
        _create(service, part, given.name, track)
    return show_event(service, token, given.name)


def _is_taken(service: Service, name: str) -> bool:
    try:
        return study_id(service.database, name) is not None
    except UnknownStudy:
        return False


def _part(given: StudyIn, track: str, items: list[ItemIn]) -> StudyIn:
    if len(items) <= given.k:
        raise BadProblem(f"track {track!r} has {len(items)} items; to find the best {given.k} it needs more than that")
    name = f"{given.name} - {track}"
    if len(name) > MOST_LETTERS:
        raise BadProblem(f"the name {name!r} is too long; use a shorter name for the event or the track")
    return given.model_copy(update={"name": name, "items": items})


@router.get("/events/{name}", responses=problems(404))
def show_event(service: ServiceDep, token: Owner, name: StudyName) -> EventOut:
    """View all tracks of an event."""
    opened = [service.studies.open(study) for study in _tracks(service, name)]
    return EventOut(name=name, tracks=[_track(service, one) for one in opened])


@router.post("/events/{name}/judges", status_code=201, responses=problems(403, 404, 409))
def add_to_tracks(
    request: Request, service: ServiceDep, token: Owner, name: StudyName, given: TrackJudges
) -> Links:  # fmt: skip
    """Add judges to tracks of an event and get a link for each judge and track."""
    studies = {service.studies.open(study).display.track or "": study for study in _tracks(service, name)}
    people: dict[str, list[Person]] = {}
    for person in given.people:
        for track in person.tracks or studies:
            if track not in studies:
                raise BadProblem(f"{track!r} is no track of this event; the tracks are {', '.join(studies)}")
            people.setdefault(studies[track], []).append(Person(name=person.name, email=person.email))
    for study, group in people.items():
        check_new(service, study, group)
    return Links(links=[link for study, group in people.items() for link in new_links(request, service, study, group)])


def _tracks(service: Service, event: str) -> list[str]:
    found = tracks_of(service.database, event)
    if not found:
        raise UnknownStudy(event)
    return found


def _track(service: Service, opened: OpenStudy) -> Track:
    study = opened.study
    study.close_due()
    line, votes = _line(service, opened), [row for row in study.rows if row.status in ("counted", "answered")]
    filled = study.filled
    return Track(
        **line, track=opened.display.track or "", items=study.problem.left, votes=len(votes),
        judges=len({row.judge for row in votes}), filled=sum(filled.values()) / len(filled),
    )  # fmt: skip


@router.get("/studies/{name}", responses=problems(404))
def show(service: ServiceDep, token: Viewer, name: StudyName) -> Dashboard:
    """View the study: verdict, items, judges, pairs and the last votes."""
    return _dashboard(service, service.studies.open(name), changed=False)


@router.put("/studies/{name}/state", responses=problems(403, 404))
def set_state(service: ServiceDep, token: Owner, name: StudyName, given: StateIn) -> Dashboard:
    """Open, pause or close the study; answers to pending questions still count. An archived study can only be read,
    until it gets another state."""
    opened = service.studies.open(name)
    if given.state == "archived":
        opened.study.archive()
        return _dashboard(service, opened)
    opened.study.archive(False)
    set_closed(service.database, opened.id, given.state == "closed")
    opened.study.pause(given.state != "open")
    return _dashboard(service, opened)


@router.put("/studies/{name}/settings", responses=problems(403, 404, 409))
def change(service: ServiceDep, token: Owner, name: StudyName, given: SettingsIn) -> Dashboard:
    """Change the vote budget, delta or the number of judges that a proof needs. See the fields for what each change
    means for the proof."""
    changes = given.model_dump(exclude_unset=True)
    for setting in ("delta", "min_judges"):
        if changes.get(setting, 1) is None:
            raise BadProblem(f"{setting} is null; give a number, or leave it out")
    opened = service.studies.open(name)
    opened.study.change(**changes)
    return _dashboard(service, opened)


@router.post("/studies/{name}/void", responses=problems(403, 404, 409))
def void(service: ServiceDep, token: Owner, name: StudyName, given: JudgeIn) -> Dashboard:
    """Void a judge: ask them no more questions and take all their votes out. The votes no longer support any item;
    what they counted against an item stays, so voiding can never help an answer."""
    opened = service.studies.open(name)
    judge = find_judge(service.database, opened.id, given.judge)
    if judge is not None:
        revoke(service.database, Kind.judge_link, opened.id, judge.id)
    opened.study.void(given.judge if judge is None else judge.key)
    return _dashboard(service, opened)


@router.post("/questions/{id}/void", responses=problems(403, 404, 409))
def void_vote(service: ServiceDep, token: Owner, id: QuestionId) -> Dashboard:
    """Undo one vote of any judge."""
    name, number = split_id(id)
    opened = service.studies.open(name)
    opened.study.settle()
    undo_vote(opened, find_question(opened, number, None))
    return _dashboard(service, opened)


def _dashboard(service: Service, opened: OpenStudy, changed: bool = True) -> Dashboard:
    if changed:
        service.database.flush()
    return Dashboard(**dashboard(service.database, opened))


# --- items ---


@items_router.post("/uploads", status_code=201)
def upload(service: ServiceDep, token: Owner, file: UploadFile) -> Upload:
    """Upload a picture (PNG, JPEG, GIF, WebP, HEIC), a sound (MP3, M4A, WAV, Ogg, FLAC) or a film (MP4, WebM). Its kind
    is read from its bytes. Of a picture only the pixels are kept, not the place where it was taken."""
    name = keep(service.database, _read(service, file))
    found = fetch(service.database, name)
    assert found is not None
    kind: Literal["image", "audio", "video"] = found.type.partition("/")[0]  # type: ignore[assignment]
    return Upload(kind=kind, address=f"{UPLOADS}{name}")


@items_router.post("/items/read", responses=problems(501))
def read(service: ServiceDep, token: Owner, file: UploadFile) -> ItemsOut:
    """Read items from a CSV, Excel, JSON or text file. Nothing is stored: look at them, then create a study."""
    rows, notes = read_item_table(file.filename or "the file", _read(service, file))
    if not 0 < len(rows) <= MOST_ITEMS:
        raise BadProblem(f"the file has {len(rows):,} items; give 1 to {MOST_ITEMS:,}")
    items = []
    for place, row in enumerate(rows, 1):
        try:
            items.append(ItemIn(**row))
        except ValidationError as reason:
            raise BadProblem(f"item {place} of the file: {plain_words(reason.errors()[0])}") from None
        except TypeError:  # a member that is not a text
            raise BadProblem(f"item {place} of the file is not clear; give it a name and a text") from None
    return ItemsOut(items=items, notes=notes)


def _read(service: Service, file: UploadFile) -> bytes:
    limit = service.settings.upload_bytes
    data = file.file.read(limit + 1)
    if len(data) > limit:
        raise HTTPException(413, f"this file is too large; the limit is {limit:,} bytes")
    return data


@uploads.get("/uploads/{id}", include_in_schema=False)
def show_upload(
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


@items_router.get("/studies/{name}/items", responses=problems(404))
def items(service: ServiceDep, token: Owner, name: StudyName) -> StudyItems:
    """The items of a study with what judges see of them."""
    opened = service.studies.open(name)
    contents = {item: opened.display.contents.get(item, Content()) for item in opened.study.items}
    titles = {item: content.title for item, content in contents.items() if content.title}
    listed = [ItemIn(name=item, **_parts(content)) for item, content in contents.items()]
    gone = list(opened.study.withdrawn)
    return StudyItems(items=listed, titles=titles, can_edit=not opened.study.rows, withdrawn=gone)


def _parts(content: Content) -> dict[str, Any]:
    return {part: getattr(content, part) for part in ("text", "format", "image", "audio", "video", "answers")}


@items_router.put("/studies/{name}/items", responses=problems(404, 409))
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
        make_display(list(names), contents, cases, old.instructions, old.ties, old.blind), published=old.published,
        event=old.event, track=old.track,
    )  # fmt: skip
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


@items_router.post("/studies/{name}/items/correct", responses=problems(404, 409))
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


@items_router.post("/studies/{name}/items/withdraw", responses=problems(404, 409))
def withdraw(service: ServiceDep, token: Owner, name: StudyName, given: WithdrawIn) -> StudyItems:
    """Withdraw an item after the first question. Nothing more is asked about it, its votes stay in the record, and the
    answer is among the other items. A proof then states a larger error. It cannot be taken back."""
    opened = service.studies.open(name)
    opened.study.withdraw_item(given.item)
    service.database.flush()
    return items(service, token, name)
