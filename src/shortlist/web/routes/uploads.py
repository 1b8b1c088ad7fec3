"""Pictures of items: in by the owner, out to the study's judges."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response, UploadFile

from shortlist.web.access import JUDGE_COOKIE, OWNER_COOKIE, Here, Owner, session
from shortlist.web.pictures import fetch, keep
from shortlist.web.schemas import Upload, problems
from shortlist.web.tokens import Kind

router = APIRouter(tags=["pictures"])
PictureId = Annotated[str, Path(pattern="^[0-9a-f]{24}$")]
LOCKED = "default-src 'none'; sandbox"


@router.post("/api/uploads", status_code=201, responses=problems(401, 403))
def upload(here: Here, token: Owner, file: UploadFile) -> Upload:
    """A PNG, JPEG, GIF or WebP picture; what it is is read from its bytes."""
    data = file.file.read(here.settings.upload_bytes + 1)
    if len(data) > here.settings.upload_bytes:
        raise HTTPException(413, f"a picture may have at most {here.settings.upload_bytes:,} bytes")
    return Upload(image=f"/uploads/{keep(here.database, data)}")


@router.get("/uploads/{id}", include_in_schema=False)
def picture(request: Request, here: Here, id: PictureId) -> Response:
    """For the owner, and for judges of the study it belongs to."""
    found = fetch(here.database, id)
    if found is None or not (_owner(request, here) or _judge(request, here, found.study)):
        raise HTTPException(404, "there is no such picture for you")
    headers = {"content-security-policy": LOCKED, "cache-control": "private, max-age=86400, immutable"}
    return Response(found.data, media_type=found.type, headers=headers)


def _owner(request: Request, here: Here) -> bool:
    return session(request, here, OWNER_COOKIE, Kind.owner_session) is not None


def _judge(request: Request, here: Here, study: int | None) -> bool:
    names = [name for name in request.cookies if name.startswith(JUDGE_COOKIE)]
    tokens = (session(request, here, name, Kind.judge_session) for name in names)
    return study is not None and any(token is not None and token.study_id == study for token in tokens)
