"""The owner's side of judges: links, the open link, who is let in, conflicts of interest, personal data, and whose
votes to void. And signing in: the token of a link becomes a session cookie. Keys let programs act for the owner."""

from collections.abc import Sequence
from typing import Annotated

import segno
from fastapi import APIRouter, HTTPException, Query, Request, Response

from shortlist.core.stopping.base import Verdict
from shortlist.web.auth import (
    OWNER_COOKIE,
    Kind,
    Owner,
    ServiceDep,
    StudyName,
    Token,
    check_site,
    create_token,
    find_token,
    give_cookie,
    has_link,
    judge_cookie,
    link_address,
    revoke,
    session,
    sign_out,
    use_once,
    viewer_cookie,
    wrong_token,
)
from shortlist.web.dashboard import panel, personal_data
from shortlist.web.judges import (
    ACTIVE,
    REFUSED,
    Invitation,
    Judge,
    add_judge,
    check_name,
    erase,
    find_judge,
    invitation,
    is_code,
    join_openly,
    name_taken,
    save_invitation,
    set_conflicts,
    set_state,
)
from shortlist.web.schemas import (
    AdmitIn,
    ConflictsIn,
    Effect,
    JudgeIn,
    JudgeNames,
    JudgesIn,
    Key,
    Link,
    Links,
    OpenLinkIn,
    Panel,
    Person,
    PersonalData,
    PersonName,
    Pseudonym,
    Qr,
    Revoked,
    SessionIn,
    SessionOut,
    VoidIn,
    VoidOut,
    problems,
)
from shortlist.web.service import OpenStudy, Service, study_id

sessions = APIRouter(prefix="/api", tags=["sessions"])
router = APIRouter(prefix="/api/studies/{name}", tags=["judges"], responses=problems(401, 403, 404))
QUIET_ZONE = 4  # squares around a QR code


# --- signing in ---


@sessions.post("/sessions", responses=problems(401, 403, 409))
def open_session(request: Request, response: Response, service: ServiceDep, given: SessionIn) -> SessionOut:
    """Exchange the token of a link for a cookie. An owner link works once."""
    check_site(request, service)
    kinds = Kind.owner_link, Kind.viewer_link, Kind.judge_link, Kind.open_link
    token = find_token(service.database, given.token, *kinds)
    if token is None or (token.kind is Kind.owner_link and not use_once(service.database, token)):
        raise wrong_token(request, service, "this link no longer works; ask for a new one")
    if token.kind is Kind.owner_link:
        made = create_token(service.database, Kind.owner_session)
        give_cookie(request, response, OWNER_COOKIE, Kind.owner_session, made)
        return SessionOut(role="owner", page="/", study=None)
    assert token.study is not None
    if token.kind is Kind.viewer_link:
        made = create_token(service.database, Kind.viewer_session, token.study_id)
        give_cookie(request, response, viewer_cookie(token.study), Kind.viewer_session, made)
        return SessionOut(role="viewer", page=f"/studies/{token.study}", study=token.study)
    return _judge_session(request, response, service, token, given)


def _judge_session(
    request: Request, response: Response, service: Service, token: Token, given: SessionIn
) -> SessionOut:  # fmt: skip
    assert token.study is not None
    assert token.study_id is not None
    page, cookie = f"/judge/{token.study}", judge_cookie(token.study)
    judge_id = token.judge_id
    if judge_id is None:
        known = session(request, service, cookie, Kind.judge_session)
        if known is not None and known.study_id == token.study_id:
            return SessionOut(role="judge", page=page, study=token.study)
        code = invitation(service.database, token.study_id).code
        if given.name is None:
            return SessionOut(role="open", page=None, study=token.study, needs_code=code is not None)
        if not is_code(given.code, code):
            raise wrong_token(request, service, "this code is not right; look at it again")
        judge_id = join_openly(service.database, token.study_id, given.name).id
    made = create_token(service.database, Kind.judge_session, token.study_id, judge_id)
    give_cookie(request, response, cookie, Kind.judge_session, made)
    return SessionOut(role="judge", page=page, study=token.study)


@sessions.delete("/sessions", status_code=204, responses=problems(401, 403))
def close_session(response: Response, service: ServiceDep, token: Owner) -> None:
    """Sign out. If the request was sent with a key, the key stops working."""
    sign_out(service.database, token)
    response.delete_cookie(OWNER_COOKIE)


@sessions.post("/keys", status_code=201, responses=problems(401, 403))
def create_key(service: ServiceDep, token: Owner) -> Key:
    """Create a key for a program. It may do everything the owner may do."""
    return Key(key=create_token(service.database, Kind.owner_key))


# --- links ---


@router.get("/judges")
def show(service: ServiceDep, token: Owner, name: StudyName) -> Panel:
    """List the judges with what to look at, the limits of the open link, conflicts of interest and reasons."""
    opened = service.studies.open(name)
    found = invitation(service.database, opened.id)
    links = {kind: has_link(service.database, opened.id, kind) for kind in (Kind.open_link, Kind.viewer_link)}
    return Panel(
        **panel(service.database, opened), open_link=links[Kind.open_link], viewer_link=links[Kind.viewer_link],
        limits=OpenLinkIn.model_construct(**found._asdict()), items=list(opened.study.items),
    )  # fmt: skip


@router.post("/judges", status_code=201, responses=problems(409))
def add(request: Request, service: ServiceDep, token: Owner, name: StudyName, given: JudgesIn) -> Links:
    """Add judges and get a link for each."""
    people = [Person(name=judge) for judge in given.names] + given.people
    if not people:
        raise HTTPException(422, "no names are given; send names or people")
    check_new(service, name, people)
    return Links(links=new_links(request, service, name, people))


def check_new(service: Service, name: str, people: Sequence[Person]) -> None:
    """Refuse judges whose names are taken, before any is added."""
    study, names = study_id(service.database, name), [person.name for person in people]
    if len(set(names)) < len(names):
        raise HTTPException(422, "a name appears twice; every judge needs a different name")
    for judge in names:
        check_name(judge)
    taken = [judge for judge in names if find_judge(service.database, study, judge) is not None]
    if taken:
        raise HTTPException(409, name_taken(taken[0]))


def new_links(request: Request, service: Service, name: str, people: Sequence[Person]) -> list[Link]:
    study = study_id(service.database, name)
    made = [add_judge(service.database, study, person.name, person.email) for person in people]
    return [_new_link(request, service, name, judge) for judge in made]


@router.post("/judges/link", status_code=201)
def renew(request: Request, service: ServiceDep, token: Owner, name: StudyName, given: JudgeIn) -> Link:
    """Get a new link for a judge. The old link and its sessions stop working."""
    return renew_all(request, service, token, name, JudgeNames(judges=[given.judge])).links[0]


@router.post("/judges/links", status_code=201)
def renew_all(request: Request, service: ServiceDep, token: Owner, name: StudyName, given: JudgeNames) -> Links:
    """Get new links for several judges, to print them again. The old links and their sessions stop working."""
    study = study_id(service.database, name)
    found = _judges(service, study, given.judges)
    for judge in found:
        revoke(service.database, Kind.judge_link, study, judge.id)
    return Links(links=[_new_link(request, service, name, judge) for judge in found])


@router.post("/judges/revoke")
def end_links(service: ServiceDep, token: Owner, name: StudyName, given: JudgeIn) -> Revoked:
    """End a judge's link and sessions. Their votes still count."""
    study = study_id(service.database, name)
    (judge,) = _judges(service, study, [given.judge])
    return Revoked(revoked=revoke(service.database, Kind.judge_link, study, judge.id))


@router.post("/open-link", status_code=201)
def open_link(
    request: Request, service: ServiceDep, token: Owner, name: StudyName, given: OpenLinkIn | None = None
) -> Link:
    """Get one link for everybody: each judge who opens it enters their name. The old open link stops working. Without a
    body the limits stay as they are."""
    study = study_id(service.database, name)
    if given is not None:
        save_invitation(service.database, study, Invitation(**given.model_dump()))
    revoke(service.database, Kind.open_link, study)
    return _link(request, service, name, None, create_token(service.database, Kind.open_link, study))


@router.put("/open-link")
def limit_open_link(service: ServiceDep, token: Owner, name: StudyName, given: OpenLinkIn) -> OpenLinkIn:
    """Change who may come by the open link; the link stays the same."""
    save_invitation(service.database, study_id(service.database, name), Invitation(**given.model_dump()))
    return given


@router.delete("/open-link")
def end_open_link(service: ServiceDep, token: Owner, name: StudyName) -> Revoked:
    """End the open link. Judges who have used it can continue."""
    return Revoked(revoked=revoke(service.database, Kind.open_link, study_id(service.database, name)))


@router.post("/viewer-link", status_code=201)
def viewer_link(request: Request, service: ServiceDep, token: Owner, name: StudyName) -> Link:
    """Get a link for viewers, who see the dashboard and change nothing. Do not give it to judges: who judges must not
    see results. The old viewer link stops working; who has used it can still look."""
    study = study_id(service.database, name)
    revoke(service.database, Kind.viewer_link, study)
    return _link(request, service, name, None, create_token(service.database, Kind.viewer_link, study))


@router.delete("/viewer-link")
def end_viewer_link(service: ServiceDep, token: Owner, name: StudyName) -> Revoked:
    """End the viewer link and all sessions of viewers."""
    study = study_id(service.database, name)
    ended = [revoke(service.database, kind, study) for kind in (Kind.viewer_link, Kind.viewer_session)]
    return Revoked(revoked=sum(ended))


def _new_link(request: Request, service: Service, study: str, judge: Judge) -> Link:
    token = create_token(service.database, Kind.judge_link, study_id(service.database, study), judge.id)
    return _link(request, service, study, judge, token)


def _link(request: Request, service: Service, study: str, judge: Judge | None, token: str) -> Link:
    address = link_address(request, service, token)
    who = (None, None) if judge is None else (judge.name, judge.email)
    return Link(judge=who[0], email=who[1], study=study, link=address, qr=qr_code(address))


def qr_code(text: str) -> Qr:
    """The QR code of a text, as a path of horizontal bars."""
    rows = [list(row) for row in segno.make(text, error="m", micro=False).matrix]
    bars = []
    for y, row in enumerate(rows):
        x = 0
        while x < len(row):
            width = next((i for i, dark in enumerate(row[x:]) if not dark), len(row) - x)
            if width:
                bars.append(f"M{x + QUIET_ZONE} {y + QUIET_ZONE}h{width}v1h-{width}z")
            x += width + 1
    return Qr(size=len(rows) + 2 * QUIET_ZONE, path="".join(bars))


# --- who may judge what ---


@router.post("/judges/admit")
def admit(service: ServiceDep, token: Owner, name: StudyName, given: AdmitIn) -> Panel:
    """Let judges in who wait, or turn them away. Who was turned away can be let in later."""
    found = _judges(service, study_id(service.database, name), given.judges)
    set_state(service.database, [judge.id for judge in found], ACTIVE if given.admit else REFUSED)
    return show(service, token, name)


@router.put("/judges/conflicts")
def put_conflicts(service: ServiceDep, token: Owner, name: StudyName, given: ConflictsIn) -> Panel:
    """Say which judges must not be shown which items. This replaces what was set before; what judges declared
    themselves stays. Questions that a judge holds already are not taken back."""
    opened = service.studies.open(name)
    unknown = {item for conflict in given.conflicts for item in conflict.items} - set(opened.study.items)
    if unknown:
        raise HTTPException(422, f"{sorted(unknown)[0]!r} is not an item of this study")
    pairs = {
        (judge.id, item)
        for conflict in given.conflicts
        for judge in _judges(service, opened.id, conflict.judges)
        for item in conflict.items
    }
    set_conflicts(service.database, opened.id, sorted(pairs))
    return show(service, token, name)


# --- votes and data of a judge ---


@router.post("/judges/void", responses=problems(409))
def void(service: ServiceDep, token: Owner, name: StudyName, given: VoidIn) -> VoidOut:
    """Void several judges at once, or see what that would do to the proof. Their votes no longer support any item; what
    they counted against an item stays, so voiding can never help an answer."""
    opened = service.studies.open(name)
    opened.study.close_due()
    keys = [_key(service, opened, judge) for judge in dict.fromkeys(given.judges)]
    rows = [row for key in keys for row in opened.study.rows_of(key)]
    before, after = opened.study.examine(), opened.study.if_voided(keys)
    if not given.preview:
        _void(service, opened, given.judges, keys)
    return VoidOut(
        judges=given.judges, votes=sum(row.status in ("counted", "answered") for row in rows),
        pending=sum(row.status == "pending" for row in rows), before=_effect(before), after=_effect(after),
    )  # fmt: skip


def _void(service: Service, opened: OpenStudy, names: Sequence[str], keys: Sequence[str]) -> None:
    for name in names:
        judge = find_judge(service.database, opened.id, name)
        if judge is not None:
            revoke(service.database, Kind.judge_link, opened.id, judge.id)
    with opened.study.transaction():
        for key in keys:
            if key not in opened.study.voided:
                opened.study.void(key)
    service.database.flush()


def _key(service: Service, opened: OpenStudy, name: str) -> str:
    """The name that the votes of a judge are stored under, also of one without a link."""
    judge = find_judge(service.database, opened.id, name)
    if judge is None and not opened.study.rows_of(name):
        raise HTTPException(404, f"no judge is called {name!r}")
    return name if judge is None else judge.key


def _effect(verdict: Verdict[str]) -> Effect:
    proved = len(verdict.certainly_in) + len(verdict.certainly_out)
    said = verdict.to_dict()
    return Effect(
        done=verdict.done, votes=verdict.votes, error_bound=verdict.error_bound, proved=proved,
        votes_left=said["votes_left"], sentence=str(verdict),
    )  # fmt: skip


@router.get("/judges/data")
def export_data(
    service: ServiceDep, token: Owner, name: StudyName, judge: Annotated[PersonName, Query(description="The judge.")]
) -> PersonalData:
    """Everything that is stored about a judge."""
    opened = service.studies.open(name)
    (found,) = _judges(service, opened.id, [judge])
    return PersonalData(**personal_data(service.database, opened, found))


@router.post("/judges/erase", responses=problems(409))
def erase_data(service: ServiceDep, token: Owner, name: StudyName, given: JudgeIn) -> Pseudonym:
    """Erase a judge's name, e-mail address and own words, and end their links. Their votes stay under a pseudonym.
    Files and backups that were made before keep what they have."""
    study = study_id(service.database, name)
    (judge,) = _judges(service, study, [given.judge])
    return Pseudonym(pseudonym=erase(service.database, judge))


def _judges(service: Service, study: int, names: Sequence[str]) -> list[Judge]:
    found = [(name, find_judge(service.database, study, name)) for name in dict.fromkeys(names)]
    for name, judge in found:
        if judge is None:
            raise HTTPException(404, f"no judge with a link is called {name!r}")
    return [judge for _, judge in found if judge is not None]
